// SPDX-License-Identifier: Apache-2.0
// Switching off by Arm's Power State Coordination Interface.
#pragma once

#include <cstdint>

namespace latenz::firmware {

/// What a call may change besides its result, if it returns (Arm DEN 0028, SMCCC 1.0).
#define LATENZ_LOST_IN_A_CALL                                                                     \
  "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", \
      "x16", "x17", "memory"

struct Psci {
  static constexpr std::uint64_t system_off = 0x8400'0008;

  static void off_by_hypervisor() {
    register std::uint64_t function asm("x0") = system_off;
    asm volatile("hvc #0" : "+r"(function)::LATENZ_LOST_IN_A_CALL);
  }

  static void off_by_secure_monitor() {
    register std::uint64_t function asm("x0") = system_off;
    asm volatile("smc #0" : "+r"(function)::LATENZ_LOST_IN_A_CALL);
  }
};

#undef LATENZ_LOST_IN_A_CALL

}  // namespace latenz::firmware
