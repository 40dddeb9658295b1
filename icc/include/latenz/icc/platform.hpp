// SPDX-License-Identifier: Apache-2.0
// What a channel runs on: memory, order and wait policies in one name, and the accesses that
// channels make through them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/icc/memory.hpp"
#include "latenz/icc/order.hpp"
#include "latenz/icc/wait.hpp"

namespace latenz::icc {

template <class MemoryPolicy = Coherent, class OrderPolicy = StandardOrder,
          class WaitPolicy = Pause>
struct Platform {
  using Memory = MemoryPolicy;
  using Order = OrderPolicy;
  using Wait = WaitPolicy;
};

#if defined(__aarch64__) || defined(__arm__)
/// Cortex-A53 and Cortex-R5 of a Zynq UltraScale+ through OCM, TCM or uncached DDR.
using ZynqMp = Platform<NonCacheable, ArmSystemOrder, Spin>;
/// The same while a side's MMU or MPU is off, which makes all memory Device memory.
using ZynqMpDevice = Platform<DeviceWord, ArmSystemOrder, Spin>;
#endif

namespace detail {

/// Accesses to shared memory: order and cache maintenance together.
template <class P>
struct Access {
  static std::uint32_t load_relaxed(std::uint32_t& word) noexcept {
    P::Memory::invalidate(&word, sizeof word);
    return P::Order::load_relaxed(word);
  }
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept {
    P::Memory::invalidate(&word, sizeof word);
    return P::Order::load_acquire(word);
  }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) noexcept {
    P::Order::store_relaxed(word, value);
    P::Memory::clean(&word, sizeof word);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    P::Order::store_release(word, value);
    P::Memory::clean(&word, sizeof word);
  }
  [[gnu::always_inline]] static void write(void* shared, const void* own,
                                           std::size_t bytes) noexcept {
    P::Memory::write(shared, own, bytes);
    P::Memory::clean(shared, bytes);
  }
  [[gnu::always_inline]] static void read(void* own, const void* shared,
                                          std::size_t bytes) noexcept {
    P::Memory::invalidate(shared, bytes);
    P::Memory::read(own, shared, bytes);
  }
};

}  // namespace detail

}  // namespace latenz::icc
