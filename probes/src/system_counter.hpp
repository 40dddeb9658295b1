// SPDX-License-Identifier: Apache-2.0
// The counter that all software on an Arm board sees, hypervisors and their guests included.
#pragma once

#include <cstdint>

namespace latenz::probe {

/// The virtual counter in nanoseconds: since the board's start, or since a hypervisor created this
/// guest if it hides the time before.
inline std::uint64_t system_counter_ns() {
  std::uint64_t ticks = 0;
  std::uint64_t hz = 0;
  asm volatile("isb\n mrs %0, cntvct_el0" : "=r"(ticks));
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  constexpr std::uint64_t second = 1'000'000'000;
  return (ticks / hz * second) + (ticks % hz * second / hz);
}

}  // namespace latenz::probe
