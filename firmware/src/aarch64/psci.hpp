// SPDX-License-Identifier: Apache-2.0
// Switching off by Arm's Power State Coordination Interface.
#pragma once

#include <cstdint>

namespace latenz::firmware {

struct Psci {
  static constexpr std::uint64_t system_off = 0x8400'0008;

  static void off_by_hypervisor() {
    register std::uint64_t function asm("x0") = system_off;
    asm volatile("hvc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
  }

  static void off_by_secure_monitor() {
    register std::uint64_t function asm("x0") = system_off;
    asm volatile("smc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
  }
};

}  // namespace latenz::firmware
