// SPDX-License-Identifier: Apache-2.0
// Exception vectors of a core whose table cannot be anywhere (ARMv7-R).
#pragma once

#include <cstdint>

#include "register.hpp"

namespace latenz::firmware {

extern "C" const std::uint32_t exception_entries[8];  // vectors.S

class VectorTable {
 public:
  static void place_low() {
    fill<low>();
    choose(0);
  }

  static void place_high() {
    fill<high>();
    choose(high_vectors);
  }

 private:
  static constexpr std::uintptr_t low = 0;
  static constexpr std::uintptr_t high = 0xFFFF'0000;
  static constexpr std::uint32_t high_vectors = 1U << 13U;      // SCTLR.V
  static constexpr std::uint32_t thumb_exceptions = 1U << 30U;  // SCTLR.TE

  /// Eight jumps through the eight addresses behind them.
  template <std::uintptr_t address>
  static void fill() {
    constexpr std::uint32_t load_program_counter = 0xE59F'F018;  // ldr pc, [pc, #24]
    using Table = RegisterArray<address>;
    for (unsigned i = 0; i < 8; ++i) {
      Table::write(i, load_program_counter);
      Table::write(i + 8, exception_entries[i]);
    }
  }

  static void choose(std::uint32_t place) {
    std::uint32_t control = 0;
    asm volatile("mrc p15, 0, %0, c1, c0, 0" : "=r"(control));
    control = (control & ~(high_vectors | thumb_exceptions)) | place;
    asm volatile("dsb\n mcr p15, 0, %0, c1, c0, 0\n isb" ::"r"(control) : "memory");
  }
};

}  // namespace latenz::firmware
