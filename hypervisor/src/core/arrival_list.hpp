// SPDX-License-Identifier: Apache-2.0
// The arrivals that the hypervisor raises by a timer of its own. Freestanding.
#pragma once

#include <algorithm>
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
    return time_of(entries_[at_]);
  }

  /// Whose it is; only if not done.
  [[nodiscard]] std::uint16_t source() const {
    return static_cast<std::uint16_t>(entries_[at_].source);
  }

  void advance() { go_to(at_ + 1); }

  /// Leaves out those of the next one's source up to that time, exclusive, or to the first of
  /// another source; the same few steps for each doubling of their number. Only if not done.
  void pass_over(Instant end) {
    const std::span run = entries_.subspan(at_, entries_[at_].run);
    const auto earlier = [&](const ArrivalEntry& each) { return time_of(each) < end; };
    go_to(at_ + static_cast<std::size_t>(std::ranges::partition_point(run, earlier) - run.begin()));
  }

  /// Notes the lengths of runs in a list.
  static void find_runs(std::span<ArrivalEntry> entries) {
    for (std::size_t i = entries.size(); i-- > 0;) {
      const bool goes_on = i + 1 < entries.size() && entries[i + 1].source == entries[i].source;
      entries[i].run = goes_on ? entries[i + 1].run + 1 : 1;
    }
  }

 private:
  [[nodiscard]] Instant time_of(const ArrivalEntry& entry) const {
    return round_start_ + Duration(static_cast<std::int64_t>(entry.time_ns));
  }

  void go_to(std::size_t next) {
    at_ = next;
    if (at_ < entries_.size()) return;
    at_ = 0;
    round_start_ += period_;
    --rounds_left_;
  }

  std::span<const ArrivalEntry> entries_;
  std::uint64_t rounds_left_ = 0;
  Duration period_;
  Instant round_start_;
  std::size_t at_ = 0;
};

}  // namespace latenz::hypervisor
