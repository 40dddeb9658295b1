// SPDX-License-Identifier: Apache-2.0
// Sleeping until a time of the physical counter, which does not depend on when a hypervisor created
// this guest.
#pragma once

#include <cstdint>

#include "devices/generic_timer.hpp"

namespace latenz::firmware {

/// By the virtual timer: its counter stays behind the physical one by what the hypervisor set.
class PhysicalStart {
  using Timer = GenericTimer<>;

 public:
  static constexpr std::uint32_t interrupt = Timer::interrupt;

  /// Arms the timer; `start_ns` is rounded down to microseconds.
  static void until(std::uint64_t start_ns) {
    const std::uint64_t start = start_ns / 1000 * Timer::hz() / 1'000'000;
    Timer::start_at(start - behind());
  }

  static void stop() { Timer::stop(); }

  /// Nanoseconds that the virtual counter is behind the physical one; rounded up.
  static std::uint64_t behind_ns() {
    constexpr std::uint64_t second = 1'000'000'000;
    return (behind() * (second / 1000) / (Timer::hz() / 1000)) + 1;
  }

 private:
  /// Ticks that the virtual counter is behind the physical one.
  static std::uint64_t behind() {
    std::uint64_t before = 0;
    std::uint64_t physical = 0;
    std::uint64_t after = 0;
    asm volatile("isb\n mrs %0, cntvct_el0\n mrs %1, cntpct_el0\n mrs %2, cntvct_el0"
                 : "=r"(before), "=r"(physical), "=r"(after));
    return physical - before - ((after - before) / 2);
  }
};

}  // namespace latenz::firmware
