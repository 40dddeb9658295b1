// SPDX-License-Identifier: Apache-2.0
// Clocks as 64-bit nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace latenz::probe {

inline constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;
inline constexpr std::int64_t nanoseconds_a_millisecond = 1'000'000;

[[nodiscard]] inline std::int64_t read_clock_ns(int clock_id) {
  timespec now{};
  clock_gettime(clock_id, &now);
  return now.tv_sec * nanoseconds_a_second + now.tv_nsec;
}

// Both parts have 32 bits on 32-bit machines whose C library was not asked for more: enough for
// clocks that start at boot.
[[nodiscard]] constexpr timespec to_timespec(std::int64_t time_ns) {
  return {.tv_sec = static_cast<decltype(timespec::tv_sec)>(time_ns / nanoseconds_a_second),
          .tv_nsec = static_cast<decltype(timespec::tv_nsec)>(time_ns % nanoseconds_a_second)};
}

}  // namespace latenz::probe
