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

/// Memory that hardware keeps coherent: between cores of one cluster, processes of one machine, and
/// on the Zynq UltraScale+ DDR through the cache-coherent interconnect.
struct Coherent {
  static constexpr bool in_place = true;

  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    __builtin_memcpy(shared, own, bytes);
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    __builtin_memcpy(own, shared, bytes);
  }
  static void clean(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
  static void invalidate(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
};

/// Normal memory that neither side caches: OCM or a part of DDR so marked, a real-time core's TCM.
struct NonCacheable : Coherent {};

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
