// SPDX-License-Identifier: Apache-2.0
// The arrivals that the hypervisor raises by a timer of its own. Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "configuration.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// Goes through a list of arrivals, once or again and again.
class ArrivalList {
 public:
  /// @param entries their times in ticks by now, never decreasing, sources checked
  /// @param period ticks from one time through the list to the next
  void begin(std::span<const ArrivalEntry> entries, std::uint64_t repeats, Duration period,
             Instant epoch) {
    entries_ = entries;
    rounds_left_ = entries.empty() ? 0 : repeats;
    period_ = period;
    round_start_ = epoch;
    at_ = 0;
  }

  [[nodiscard]] bool done() const { return rounds_left_ == 0; }

  /// When the next one comes; never if all are done.
  [[nodiscard]] Instant time() const {
    if (done()) return Instant::never();
    return round_start_ + Duration(static_cast<std::int64_t>(entries_[at_].time_ns));
  }

  /// Whose it is; only if not done.
  [[nodiscard]] std::uint16_t source() const {
    return static_cast<std::uint16_t>(entries_[at_].source);
  }

  void advance() {
    if (++at_ < entries_.size()) return;
    at_ = 0;
    round_start_ += period_;
    --rounds_left_;
  }

 private:
  std::span<const ArrivalEntry> entries_;
  std::uint64_t rounds_left_ = 0;
  Duration period_;
  Instant round_start_;
  std::size_t at_ = 0;
};

}  // namespace latenz::hypervisor
