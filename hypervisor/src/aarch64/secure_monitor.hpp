// SPDX-License-Identifier: Apache-2.0
// The board's own PSCI, below us (Arm DEN 0022D).
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

class SecureMonitor {
 public:
  /// Starts a CPU at an address with an argument; 0 if it does.
  static std::int64_t cpu_on(std::uint64_t cpu, std::uint64_t entry, std::uint64_t argument) {
    return call(0xC400'0003, cpu, entry, argument);
  }

  [[noreturn]] static void power_off() {
    call(0x8400'0008, 0, 0, 0);
    while (true) asm volatile("wfi");
  }

 private:
  static std::int64_t call(std::uint64_t function, std::uint64_t a, std::uint64_t b,
                           std::uint64_t c) {
    register std::uint64_t x0 asm("x0") = function;
    register std::uint64_t x1 asm("x1") = a;
    register std::uint64_t x2 asm("x2") = b;
    register std::uint64_t x3 asm("x3") = c;
    asm volatile("smc #0"
                 : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)::"x4", "x5", "x6", "x7", "x8", "x9",
                   "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "memory");
    return static_cast<std::int64_t>(x0);
  }
};

}  // namespace latenz::hypervisor
