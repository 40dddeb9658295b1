// SPDX-License-Identifier: Apache-2.0
// The Cortex-A53's side of a pair: what differs from the Cortex-R5's.
#pragma once

#include <cstdint>

#include "cpu.hpp"

namespace latenz::pair {

struct Side {
  static constexpr bool first = true;  ///< begins where the direction is `there`
  static constexpr const char* name = "Cortex-A53";
  static constexpr std::uint8_t sender = 0;

  /// Tells the emulator, or the core's other thread, that there is nothing to do now.
  static void give_way() { asm volatile("yield" ::: "memory"); }

  /// What was written here before is visible everywhere from now on.
  static void synchronise() { asm volatile("dsb sy" ::: "memory"); }
};

/// Counts the core's cycles; in QEMU nanoseconds of virtual time, as on the other core.
struct CycleCounter {
  static void start() {
    const std::uint64_t enable = 1;
    const std::uint64_t cycles = 1U << 31U;
    asm volatile("msr pmcr_el0, %0\n msr pmcntenset_el0, %1\n isb" ::"r"(enable), "r"(cycles));
  }

  [[gnu::always_inline]] static inline std::uint32_t now() {
    std::uint64_t value = 0;
    asm volatile("mrs %0, pmccntr_el0" : "=r"(value)::"memory");
    return static_cast<std::uint32_t>(value);
  }
};

/// The system counter that both processors can read.
struct SystemCounter {
  [[gnu::always_inline]] static inline std::uint32_t now() {
    std::uint64_t value = 0;
    asm volatile("isb\n mrs %0, cntpct_el0" : "=r"(value)::"memory");
    return static_cast<std::uint32_t>(value);
  }

  /// As firmware has told; it writes the same number to the counter's own register.
  static std::uint32_t hz() {
    std::uint64_t value = 0;
    asm("mrs %0, cntfrq_el0" : "=r"(value));
    return static_cast<std::uint32_t>(value);
  }
};

}  // namespace latenz::pair
