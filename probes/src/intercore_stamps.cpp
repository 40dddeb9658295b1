// SPDX-License-Identifier: Apache-2.0
#include "intercore_stamps.hpp"

#include <algorithm>
#include <array>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace latenz::probe {
namespace {

/// Whether the counter runs at one rate in all states of all CPUs ("invariant"), so that the kernel
/// keeps those of all CPUs alike.
bool has_invariant_counter() {
#ifdef __x86_64__
  constexpr unsigned advanced_power_management = 0x8000'0007;
  constexpr unsigned invariant_counter = 1U << 8U;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(advanced_power_management, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & invariant_counter) != 0;
#else
  return false;
#endif
}

struct Reading {
  std::int64_t ticks;
  std::int64_t ns;
};

/// Both clocks at once: the reading of several that took the shortest time.
Reading read_both(const Stamps& stamps) {
  constexpr int tries = 16;
  Reading best{};
  std::int64_t shortest = 0;
  for (int i = 0; i < tries; ++i) {
    const std::int64_t before = stamps.begin();
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    const std::int64_t after = stamps.end();
    if (i == 0 || after - before < shortest) {
      shortest = after - before;
      best = {.ticks = before + (after - before) / 2, .ns = now_ns};
    }
  }
  return best;
}

}  // namespace

Stamps Stamps::calibrated() {
  constexpr std::int64_t calibration_ns = 20'000'000;
  constexpr std::int64_t slowest_counter = 600'000'000;  // ticks a second that `duration_ns` takes
  Stamps stamps;
  stamps.counter_ = has_invariant_counter();
  Reading first = read_both(stamps);
  if (stamps.counter_) {
    Reading last = first;
    do {  // again if this process was held up so long that the calculation would not fit
      first = read_both(stamps);
      const timespec pause = to_timespec(calibration_ns);
      nanosleep(&pause, nullptr);
      last = read_both(stamps);
    } while (last.ns - first.ns > nanoseconds_a_second);
    const std::int64_t ticks = last.ticks - first.ticks;
    const std::int64_t elapsed_ns = last.ns - first.ns;
    const std::int64_t rate = ticks * nanoseconds_a_second / elapsed_ns;
    if (rate < slowest_counter) {
      stamps.counter_ = false;
      first = read_both(stamps);
    } else {
      stamps.ticks_a_second_ = rate;
      stamps.ns_a_tick_ = (elapsed_ns << fraction_bits) / ticks;
    }
  }
  stamps.start_ = first.ticks;
  stamps.start_ns_ = first.ns;
  return stamps;
}

std::int64_t Stamps::pair_ticks() const {
  std::array<std::int64_t, 1001> found{};
  for (std::int64_t& ticks : found) {
    const std::int64_t before = begin();
    ticks = end() - before;
  }
  std::ranges::nth_element(found, found.begin() + found.size() / 2);
  return found[found.size() / 2];
}

}  // namespace latenz::probe
