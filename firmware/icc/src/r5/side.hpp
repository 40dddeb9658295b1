// SPDX-License-Identifier: Apache-2.0
// The Cortex-R5's side of a pair: what differs from the Cortex-A53's.
#pragma once

#include <cstdint>

#include "cpu.hpp"
#include "register.hpp"

namespace latenz::pair {

struct Side {
  static constexpr bool first = false;  ///< answers where the direction is `there`
  static constexpr const char* name = "Cortex-R5";
  static constexpr std::uint8_t sender = 2;

  /// Tells the emulator that there is nothing to do now.
  static void give_way() { asm volatile("yield" ::: "memory"); }

  /// What was written here before is visible everywhere from now on.
  static void synchronise() { asm volatile("dsb sy" ::: "memory"); }
};

/// Counts the core's cycles; in QEMU nanoseconds of virtual time, as on the other core.
struct CycleCounter {
  static void start() {
    asm volatile("mcr p15, 0, %0, c9, c12, 0\n mcr p15, 0, %1, c9, c12, 1\n isb" ::"r"(1),
                 "r"(1U << 31U));
  }

  [[gnu::always_inline]] static inline std::uint32_t now() {
    std::uint32_t value = 0;
    asm volatile("mrc p15, 0, %0, c9, c13, 0" : "=r"(value)::"memory");
    return value;
  }
};

/// The system counter that both processors can read: its lower word (UG1087, IOU_SCNTR).
struct SystemCounter {
  [[gnu::always_inline]] static inline std::uint32_t now() {
    return firmware::Register<0xFF25'0000>::read();
  }

  /// As firmware has told (UG1087, IOU_SCNTRS: base_frequency_ID_register).
  static std::uint32_t hz() { return firmware::Register<0xFF26'0020>::read(); }
};

}  // namespace latenz::pair
