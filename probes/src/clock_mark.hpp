// SPDX-License-Identifier: Apache-2.0
// A mark in the kernel's trace by which its clock is joined with that of another machine: what the
// time-stamp counter was at a time of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

namespace latenz::probe {

/// CLOCK_MONOTONIC, read between two readings of the time-stamp counter.
struct ClockReading {
  std::uint64_t before = 0;
  std::int64_t monotonic_ns = 0;
  std::uint64_t after = 0;
};

/// The reading of many whose counter went on the least. Throws `Failure` on a machine without this
/// counter.
[[nodiscard]] ClockReading read_clocks();

/// Writes a reading into the trace of the top instance:
///   latenz-clock: monotonic NS counter BEFORE to AFTER
/// Throws `Failure` if there is no tracefs, or no permission.
void mark_clocks();

}  // namespace latenz::probe
