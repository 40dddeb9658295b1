// SPDX-License-Identifier: Apache-2.0
#include "clock_watch.hpp"

#include <cstdlib>
#include <ctime>

#include "clock.hpp"

namespace latenz::probe {
namespace {

constexpr int most_tries = 20;
/// Two readings are each uncertain by what they took.
constexpr std::int64_t least_told_ns = 4 * longest_reading_ns;

}  // namespace

std::optional<ClockOffsets> read_clock_offsets() {
  for (int tries = 0; tries < most_tries; ++tries) {
    const std::int64_t before_ns = read_clock_ns(CLOCK_MONOTONIC);
    const std::int64_t boot_ns = read_clock_ns(CLOCK_BOOTTIME);
    const std::int64_t real_ns = read_clock_ns(CLOCK_REALTIME);
    if (read_clock_ns(CLOCK_MONOTONIC) - before_ns <= longest_reading_ns) {
      return ClockOffsets{.boot_ns = boot_ns - before_ns, .real_ns = real_ns - before_ns};
    }
  }
  return std::nullopt;
}

void ClockWatch::look(const std::optional<ClockOffsets>& now) {
  if (now && last_) {
    const std::int64_t asleep_ns = now->boot_ns - last_->boot_ns;
    const bool suspended = asleep_ns > least_told_ns;
    // The time of day goes on in a suspended machine, too.
    const std::int64_t step_ns = now->real_ns - last_->real_ns - (suspended ? asleep_ns : 0);
    suspended_ns_ += suspended ? asleep_ns : 0;
    if (std::abs(step_ns) > least_told_ns) {
      ++steps_;
      stepped_ns_ += step_ns;
    }
  }
  last_ = now ? now : last_;
}

}  // namespace latenz::probe
