// SPDX-License-Identifier: Apache-2.0
// Stamps that processes on different CPUs may subtract from each other.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "clock.hpp"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace latenz::probe {

/// The time-stamp counter where all CPUs have the same, CLOCK_MONOTONIC elsewhere; `begin` and
/// `end` return ticks of it.
class Stamps {
 public:
  /// Finds out which clock this machine has, and its rate; takes some 20 ms.
  static Stamps calibrated();

  /// Before what is measured: what came before it in the program is done.
  [[nodiscard]] std::int64_t begin() const {
#ifdef __x86_64__
    if (counter_) {
      _mm_lfence();
      return static_cast<std::int64_t>(__rdtsc());
    }
#endif
    return read_clock_ns(CLOCK_MONOTONIC);
  }

  /// After what is measured: all of its loads are done.
  [[nodiscard]] std::int64_t end() const {
#ifdef __x86_64__
    if (counter_) {
      unsigned cpu = 0;
      return static_cast<std::int64_t>(__rdtscp(&cpu));
    }
#endif
    return read_clock_ns(CLOCK_MONOTONIC);
  }

  /// A difference of two stamps, rounded to the nearest nanosecond.
  [[nodiscard]] std::int64_t duration_ns(std::int64_t ticks) const {
    constexpr std::int64_t half = std::int64_t{1} << (fraction_bits - 1);
    const std::int64_t high = ticks >> fraction_bits;
    const std::int64_t low = ticks & ((std::int64_t{1} << fraction_bits) - 1);
    return high * ns_a_tick_ + ((low * ns_a_tick_ + half) >> fraction_bits);
  }

  /// A stamp as nanoseconds of CLOCK_MONOTONIC.
  [[nodiscard]] std::int64_t time_ns(std::int64_t stamp) const {
    return start_ns_ + duration_ns(stamp - start_);
  }

  [[nodiscard]] std::string_view clock() const {
    return counter_ ? "time-stamp counter" : "CLOCK_MONOTONIC";
  }

  /// What `begin` and `end` with nothing between them show: part of every measured duration.
  [[nodiscard]] std::int64_t pair_ticks() const;

  [[nodiscard]] std::int64_t ticks_a_second() const { return ticks_a_second_; }

 private:
  static constexpr unsigned fraction_bits = 31;

  bool counter_ = false;
  std::int64_t ticks_a_second_ = nanoseconds_a_second;
  std::int64_t ns_a_tick_ = std::int64_t{1} << fraction_bits;  ///< in units of 2^-fraction_bits
  std::int64_t start_ = 0;
  std::int64_t start_ns_ = 0;
};

}  // namespace latenz::probe
