// SPDX-License-Identifier: Apache-2.0
#include "clock_mark.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "clock.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "tracing.hpp"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace latenz::probe {

#ifdef __x86_64__

ClockReading read_clocks() {
  constexpr int readings = 100;
  ClockReading best;
  for (int i = 0; i < readings; ++i) {
    ClockReading now;
    _mm_lfence();
    now.before = __rdtsc();
    _mm_lfence();
    now.monotonic_ns = read_clock_ns(CLOCK_MONOTONIC);
    _mm_lfence();
    now.after = __rdtsc();
    if (i == 0 || now.after - now.before < best.after - best.before) {
      best = now;
    }
  }
  return best;
}

#else

ClockReading read_clocks() { throw Failure("--mark-clock: only x86 has a time-stamp counter"); }

#endif

void mark_clocks() {
  const auto path = find_tracefs("--mark-clock") / "trace_marker";
  const File marker = File::open(path, O_WRONLY);
  const ClockReading read = read_clocks();
  const std::string text = "latenz-clock: monotonic " + std::to_string(read.monotonic_ns) +
                           " counter " + std::to_string(read.before) + " to " +
                           std::to_string(read.after) + "\n";
  if (!marker.is_open() || write(marker.descriptor(), text.data(), text.size()) < 0) {
    throw Failure("--mark-clock: " + path.string() + ": " + std::strerror(errno));
  }
}

}  // namespace latenz::probe
