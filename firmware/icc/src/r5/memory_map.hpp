// SPDX-License-Identifier: Apache-2.0
// Memory protection of a Cortex-R5: DDR is cached but for what is shared.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "places.hpp"

namespace latenz::pair {

/// Registers: Arm Architecture Reference Manual for ARMv7-R, B6 (PMSAv7). Of regions that overlap
/// the one with the highest number counts.
class MemoryMap {
 public:
  /// Does nothing if it is enabled, as after a restart of the program.
  static void enable() {
    std::uint32_t now = 0;
    asm volatile("mrc p15, 0, %0, c1, c0, 0" : "=r"(now));
    if ((now & protection) != 0) return;
    std::uint32_t next = 0;
    set(next++, {0, std::size_t{1} << 31U}, cached);
    set(next++, {std::uintptr_t{1} << 31U, std::size_t{1} << 31U}, device);
    set(next++, plain_ddr, uncached);
    set(next++, coherent_ddr, uncached);
    set(next++, {0xFFFC'0000, 0x4'0000}, uncached);
    asm volatile(
        "mcr p15, 0, %1, c15, c5, 0\n"  // nothing is in the data cache,
        "mcr p15, 0, %1, c7, c5, 0\n"   // nor in that for instructions
        "dsb sy\n mcr p15, 0, %0, c1, c0, 0\n isb" ::"r"(now | protection | caches),
        "r"(0)
        : "memory");
  }

 private:
  // SCTLR
  static constexpr std::uint32_t protection = 1U << 0U;
  static constexpr std::uint32_t caches = (1U << 2U) | (1U << 12U);

  // access control: full access; memory type by TEX, S, C, B
  static constexpr std::uint32_t full = 3U << 8U;
  static constexpr std::uint32_t cached = full | (1U << 3U) | 3U;
  static constexpr std::uint32_t uncached = full | (1U << 3U) | (1U << 2U);
  static constexpr std::uint32_t device = full | (1U << 12U) | 1U;

  /// Sizes are powers of two.
  static void set(std::uint32_t region, const Area& area, std::uint32_t access) {
    const auto size_field = static_cast<std::uint32_t>(std::countr_zero(area.size) - 1);
    asm volatile(
        "mcr p15, 0, %0, c6, c2, 0\n mcr p15, 0, %1, c6, c1, 0\n"
        "mcr p15, 0, %3, c6, c1, 4\n mcr p15, 0, %2, c6, c1, 2" ::"r"(region),
        "r"(area.begin), "r"((size_field << 1U) | 1U), "r"(access));
  }
};

}  // namespace latenz::pair
