// SPDX-License-Identifier: Apache-2.0
// The arrivals that the hypervisor raises by a timer of its own. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "configuration.hpp"
#include "dispatcher_plan.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// Goes through a list of arrivals. Each source goes through its own part
/// of it, so that leaving out what a masked one has takes no time for what others have in between.
/// What sources of other CPUs have is left out.
class ArrivalList {
 public:
  /// Nothing is masked. Before it, nothing is to come.
  /// @param entries their times in ticks by now; sources checked, by source, and of each source
  ///                never decreasing
  void begin(std::span<const ArrivalEntry> entries, Instant epoch,
             BitSet own_sources = ~BitSet{0}) {
    epoch_ = epoch;
    count_ = 0;
    while (!entries.empty()) {
      const auto source = static_cast<std::uint16_t>(entries.front().source);
      const auto same = [&](const ArrivalEntry& each) { return each.source == source; };
      const auto end = std::ranges::partition_point(entries, same);
      const auto length = static_cast<std::size_t>(end - entries.begin());
      if ((own_sources & bit(source)) != 0) {
        Part& part = parts_[count_++];
        part = {entries.first(length), 0, Instant::never(), source};
        go_to(part, 0);
      }
      entries = entries.subspan(length);
    }
    find_next();
  }

  /// Whether anything was listed.
  [[nodiscard]] bool has_any() const { return count_ > 0; }

  /// Nothing is to come any more, but of masked sources.
  [[nodiscard]] bool done() const { return next_ == nullptr; }

  /// When the next one comes; never if all are done.
  [[nodiscard]] Instant time() const { return done() ? Instant::never() : time_; }

  /// Whose it is, at equal times the first in the order of the sources; only if not done.
  [[nodiscard]] std::uint16_t source() const { return next_->source; }

  /// Takes as many steps as there are sources. Only if not done.
  void advance() {
    go_to(*next_, next_->next + 1);
    find_next();
  }

  /// Nothing of a source comes until it is unmasked.
  void mask(std::uint16_t source) {
    Part* const part = part_of(source);
    if (part == nullptr) return;
    part->time = Instant::never();
    find_next();
  }

  /// Leaves out what a masked source has before that time, and what comes then comes. It takes the
  /// same few steps for each doubling of what the source has, besides those of advance().
  void unmask(std::uint16_t source, Instant from) {
    Part* const found = part_of(source);
    if (found == nullptr) return;
    Part& part = *found;
    const auto earlier = [&](const ArrivalEntry& each) { return time_of(each) < from; };
    const auto rest = part.entries.subspan(part.next);
    const auto first = std::ranges::partition_point(rest, earlier);
    go_to(part, part.next + static_cast<std::size_t>(first - rest.begin()));
    find_next();
  }

 private:
  struct Part {
    std::span<const ArrivalEntry> entries;  ///< of one source
    std::size_t next;
    Instant time;  ///< of the next one; never if it is masked or done
    std::uint16_t source;
  };

  /// Null if none of it is listed.
  [[nodiscard]] Part* part_of(std::uint16_t source) {
    Part* const end = parts_.data() + count_;
    Part* const found = std::ranges::find(parts_.data(), end, source, &Part::source);
    return found == end ? nullptr : found;
  }

  [[nodiscard]] Instant time_of(const ArrivalEntry& entry) const {
    return epoch_ + Duration(static_cast<std::int64_t>(entry.time_ns));
  }

  void go_to(Part& part, std::size_t next) const {
    part.next = next;
    part.time = next == part.entries.size() ? Instant::never() : time_of(part.entries[next]);
  }

  void find_next() {
    time_ = Instant::never();
    next_ = nullptr;
    for (Part* part = parts_.data(); part != parts_.data() + count_; ++part) {
      if (part->time >= time_) continue;
      time_ = part->time;
      next_ = part;
    }
  }

  // All zero before begin(), so that it takes no place in an image.
  Instant time_;
  Part* next_ = nullptr;   ///< null: nothing is to come
  std::size_t count_ = 0;  ///< of parts
  Instant epoch_;
  std::array<Part, Configuration::most_sources> parts_{};
};

}  // namespace latenz::hypervisor
