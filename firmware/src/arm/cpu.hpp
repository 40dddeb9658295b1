// SPDX-License-Identifier: Apache-2.0
// What the measuring program needs of a 32-bit Arm real-time core in supervisor mode.
#pragma once

#include <cstdint>

namespace latenz::firmware {

/// Registers: Arm Architecture Reference Manual for ARMv8-R AArch32 and for ARMv7-R.
class Cpu {
 public:
  static void enable_interrupts() { asm volatile("cpsie i" ::: "memory"); }
  static void disable_interrupts() { asm volatile("cpsid i" ::: "memory"); }
  static void wait_for_interrupt() { asm volatile("dsb\n wfi" ::: "memory"); }

  /// Sixteen instructions for each turn, at least one turn.
  static void pause(std::uint32_t turns) {
    asm volatile(
        "1: .rept 14\n nop\n .endr\n"
        " subs %0, %0, #1\n bhi 1b"
        : "+r"(turns)::"cc");
  }

  [[noreturn]] static void undefined_instruction() {
    asm volatile("udf #0");
    __builtin_unreachable();
  }
};

#if __ARM_ARCH >= 8
/// The virtual counter and timer (CNTV) of ARMv8-R.
struct VirtualTimer {
  static std::uint64_t hz() {
    std::uint32_t value = 0;
    asm volatile("mrc p15, 0, %0, c14, c0, 0" : "=r"(value));
    return value;
  }

  /// No barrier: taking the exception was one.
  [[gnu::always_inline]] static inline std::uint64_t count() {
    std::uint64_t value = 0;
    asm volatile("mrrc p15, 1, %Q0, %R0, c14" : "=r"(value));
    return value;
  }

  static void compare(std::uint64_t value) {
    asm volatile("mcrr p15, 3, %Q0, %R0, c14" ::"r"(value));
  }

  static void control(std::uint64_t value) {
    asm volatile("mcr p15, 0, %0, c14, c3, 1\n isb" ::"r"(static_cast<std::uint32_t>(value)));
  }
};
#endif

}  // namespace latenz::firmware
