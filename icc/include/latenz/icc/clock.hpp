// SPDX-License-Identifier: Apache-2.0
// Steady clocks for deadlines: `now_ns()` in nanoseconds from an arbitrary start.
#pragma once

#include <cstdint>

#if __STDC_HOSTED__ && __has_include(<time.h>)
#include <time.h>
#endif

namespace latenz::icc {

#if __STDC_HOSTED__ && __has_include(<time.h>) && defined(CLOCK_MONOTONIC)
/// The operating system's.
struct MonotonicClock {
  static std::int64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};
#endif

#ifdef __aarch64__
/// The Arm generic timer's virtual counter (CNTVCT_EL0), which bare-metal code may read as well.
struct GenericTimerClock {
  static std::int64_t now_ns() noexcept {
    std::uint64_t ticks = 0;
    std::uint64_t ticks_per_s = 0;
    asm volatile("isb\n\tmrs %0, cntvct_el0\n\tmrs %1, cntfrq_el0"
                 : "=r"(ticks), "=r"(ticks_per_s)::"memory");
    const std::uint64_t whole_s = ticks / ticks_per_s;
    const std::uint64_t rest = ticks % ticks_per_s;
    return static_cast<std::int64_t>(whole_s * 1'000'000'000 + rest * 1'000'000'000 / ticks_per_s);
  }
};
#endif

}  // namespace latenz::icc
