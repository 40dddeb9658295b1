// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of the configuration as ticks of the system counter. Freestanding.
#pragma once

#include <cstdint>

#include "latenz/time.hpp"

namespace latenz::hypervisor {

class Clock {
 public:
  explicit constexpr Clock(std::uint64_t hz) : hz_(hz) {}

  /// Nearest number of ticks; seconds are taken apart, so that nothing overflows below 292 years.
  [[nodiscard]] constexpr std::uint64_t nearest(std::uint64_t time_ns) const {
    return (time_ns / second * hz_) + (((time_ns % second * hz_) + (second / 2)) / second);
  }

  /// No more than the time: for a monitor's distances. Two events that are so far apart are seen at
  /// least so many ticks apart, wherever ticks fall, so that none is denied for the clock's sake.
  [[nodiscard]] constexpr Duration at_most(std::uint64_t time_ns) const {
    return ticks((time_ns / second * hz_) + (time_ns % second * hz_ / second));
  }

  /// No less than the time: for budgets, which must not get shorter.
  [[nodiscard]] constexpr Duration at_least(std::uint64_t time_ns) const {
    return ticks((time_ns / second * hz_) + (((time_ns % second * hz_) + second - 1) / second));
  }

  /// Whether ticks are no longer than nanoseconds, so that stamps are exact.
  [[nodiscard]] constexpr bool is_exact() const { return hz_ >= second; }

  /// What at_most() leaves out, in parts of a tick: 1'000'000'000 are a whole one.
  [[nodiscard]] constexpr std::uint32_t remainder(std::uint64_t time_ns) const {
    return static_cast<std::uint32_t>(time_ns % second * hz_ % second);
  }

  [[nodiscard]] constexpr Duration duration(std::uint64_t time_ns) const {
    return ticks(nearest(time_ns));
  }

 private:
  static constexpr std::uint64_t second = 1'000'000'000;

  static constexpr Duration ticks(std::uint64_t number) {
    return Duration(static_cast<std::int64_t>(number));
  }

  std::uint64_t hz_;
};

}  // namespace latenz::hypervisor
