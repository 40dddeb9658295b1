// SPDX-License-Identifier: Apache-2.0
// Memory policies: how payloads are moved in and out of shared memory.
//
// A policy provides, as static functions:
//   write(shared, own, bytes)   copies a payload into shared memory
//   read(own, shared, bytes)    copies one out of it
//   clean(address, bytes)       makes this side's stores there visible to the other side
//   invalidate(address, bytes)  makes this side's next loads there see the other side's stores
// and the constant
//   in_place    whether objects in the memory may be used where they are
#pragma once

#include <cstddef>
#include <cstdint>

namespace latenz::icc {

namespace detail {

/// What one instruction moves: a vector where the compiler may use them, else a general register.
#if defined(__SSE2__) || defined(__ARM_NEON)
using WidestUnit [[gnu::vector_size(16)]] = std::uint32_t;
#else
using WidestUnit = std::uintptr_t;
#endif

template <class Unit>
inline void copy_unit(std::byte* to, const std::byte* from) noexcept {
  Unit unit;
  __builtin_memcpy(&unit, from, sizeof unit);
  __builtin_memcpy(to, &unit, sizeof unit);
}

/// Of a known size up to this; beyond, memcpy's own code pays, which knows wider vectors and the
/// processor's own copying.
inline constexpr std::size_t longest_inline = 512;
inline constexpr std::size_t longest_in_words = 256;

/// Copies as wide as the processor can, without the string instructions that compilers put in place
/// of a memcpy of known size: they take long to start.
[[gnu::always_inline]] inline void copy_wide(void* to_begin, const void* from_begin,
                                             std::size_t bytes) noexcept {
  if (__builtin_constant_p(bytes) == 0 || bytes > longest_inline) {
#ifdef __OPTIMIZE__
    asm("" : "+r"(bytes));  // a size that the compiler does not know: it calls the function
#endif
    __builtin_memcpy(to_begin, from_begin, bytes);
    return;
  }
  auto* to = static_cast<std::byte*>(to_begin);
  const auto* from = static_cast<const std::byte*>(from_begin);
  constexpr std::size_t width = sizeof(WidestUnit);
  std::size_t at = 0;
  for (; at + 4 * width <= bytes; at += 4 * width) {
    copy_unit<WidestUnit>(to + at, from + at);
    copy_unit<WidestUnit>(to + at + width, from + at + width);
    copy_unit<WidestUnit>(to + at + 2 * width, from + at + 2 * width);
    copy_unit<WidestUnit>(to + at + 3 * width, from + at + 3 * width);
  }
  __builtin_memcpy(to + at, from + at, bytes % (4 * width));  // known: some moves
}

/// Copies a message that was filled just now, by stores as narrow as its members. A load that is
/// wider than the store before it waits until that store is in the cache, behind all earlier ones,
/// which wait for lines of the other side: 64 bytes took twice as long. So it is loaded in words.
[[gnu::always_inline]] inline void copy_filled(void* to_begin, const void* from_begin,
                                               std::size_t bytes) noexcept {
  constexpr std::size_t width = sizeof(std::uint32_t);
  if (__builtin_constant_p(bytes) == 0 || bytes > longest_in_words || bytes % width != 0) {
    copy_wide(to_begin, from_begin, bytes);
    return;
  }
  auto* to = static_cast<std::byte*>(to_begin);
  const auto* from = static_cast<const std::byte*>(from_begin);
  for (std::size_t at = 0; at < bytes; at += width) {
    std::uint32_t word = 0;
    __builtin_memcpy(&word, from + at, width);
    asm("" : "+r"(word));  // or else the compiler makes wide loads of these
    __builtin_memcpy(to + at, &word, width);
  }
}

}  // namespace detail

/// Memory that hardware keeps coherent: between cores of one cluster, processes of one machine, and
/// on the Zynq UltraScale+ DDR through the cache-coherent interconnect.
struct Coherent {
  static constexpr bool in_place = true;

  [[gnu::always_inline]] static void write(void* shared, const void* own,
                                           std::size_t bytes) noexcept {
    detail::copy_filled(shared, own, bytes);
  }
  [[gnu::always_inline]] static void read(void* own, const void* shared,
                                          std::size_t bytes) noexcept {
    detail::copy_wide(own, shared, bytes);
  }
  static void clean(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
  static void invalidate(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
};

/// Normal memory that neither side caches: OCM or a part of DDR so marked, a real-time core's TCM.
/// Each access goes to the memory, so copies are as wide as can be.
struct NonCacheable : Coherent {
  [[gnu::always_inline]] static void write(void* shared, const void* own,
                                           std::size_t bytes) noexcept {
    detail::copy_wide(shared, own, bytes);
  }
};

/// Memory that takes whole aligned words only, as Device memory does on Arm: no instruction may
/// touch it unaligned or wider than a word (memcpy becomes 128-bit pairs on the Cortex-A53).
struct DeviceWord {
  static constexpr bool in_place = false;

  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    auto* to = static_cast<volatile std::uint32_t*>(shared);
    const auto* from = static_cast<const std::byte*>(own);
    for (; bytes >= sizeof(std::uint32_t); bytes -= sizeof(std::uint32_t)) {
      std::uint32_t word = 0;
      __builtin_memcpy(&word, from, sizeof word);
      *to = word;
      ++to;
      from += sizeof word;
    }
    if (bytes != 0) {
      std::uint32_t word = 0;
      __builtin_memcpy(&word, from, bytes);
      *to = word;
    }
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    const auto* from = static_cast<const volatile std::uint32_t*>(shared);
    auto* to = static_cast<std::byte*>(own);
    for (; bytes >= sizeof(std::uint32_t); bytes -= sizeof(std::uint32_t)) {
      const std::uint32_t word = *from;
      __builtin_memcpy(to, &word, sizeof word);
      ++from;
      to += sizeof word;
    }
    if (bytes != 0) {
      const std::uint32_t word = *from;
      __builtin_memcpy(to, &word, bytes);
    }
  }
  static void clean(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
  static void invalidate(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
};

/// Memory that a side caches and hardware does not keep coherent. `Hooks` provides
/// `clean(address, bytes)` and `invalidate(address, bytes)`, for every cache line that the bytes
/// touch; each returns when it has taken effect (on Arm: ends with `dsb`). An invalidation never
/// discards this side's own stores: channels give each line one writing side at a time.
template <class Hooks>
struct Cached : Coherent {
  static void clean(const void* address, std::size_t bytes) noexcept {
    Hooks::clean(address, bytes);
  }
  static void invalidate(const void* address, std::size_t bytes) noexcept {
    Hooks::invalidate(address, bytes);
  }
};

}  // namespace latenz::icc
