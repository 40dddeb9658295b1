// SPDX-License-Identifier: Apache-2.0
// What the measuring program needs of an AArch64 core at EL1.
#pragma once

#include <cstdint>
#include <string_view>

namespace latenz::firmware {

/// Number and meaning of registers: Arm Architecture Reference Manual, D17 and D19.
class Cpu {
 public:
  static void enable_interrupts() { asm volatile("msr daifclr, #2" ::: "memory"); }
  static void disable_interrupts() { asm volatile("msr daifset, #2" ::: "memory"); }
  static void wait_for_interrupt() { asm volatile("wfi" ::: "memory"); }

  /// Sixteen instructions for each turn, at least one turn.
  static void pause(std::uint32_t turns) {
    asm volatile(
        "1: .rept 14\n nop\n .endr\n"
        " subs %w0, %w0, #1\n b.hi 1b"
        : "+r"(turns)::"cc");
  }

  [[noreturn]] static void undefined_instruction() {
    asm volatile("udf #0");
    __builtin_unreachable();
  }
};

/// The virtual counter and timer (CNTV): free for any guest, and not shifted without a hypervisor.
struct VirtualTimer {
  static std::uint64_t hz() {
    std::uint64_t value = 0;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(value));
    return value;
  }

  /// No barrier: taking the exception was one.
  [[gnu::always_inline]] static inline std::uint64_t count() {
    std::uint64_t value = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
  }

  static void compare(std::uint64_t value) { asm volatile("msr cntv_cval_el0, %0" ::"r"(value)); }

  static void control(std::uint64_t value) {
    asm volatile("msr cntv_ctl_el0, %0\n isb" ::"r"(value));
  }
};

}  // namespace latenz::firmware
