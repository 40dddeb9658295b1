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

/// Goes through a list of arrivals, once or again and again. Each source goes through its own part
/// of it, so that leaving out what a masked one has takes no time for what others have in between.
/// What sources of other CPUs have is left out.
class ArrivalList {
 public:
  /// Nothing is masked. Before it, nothing is to come.
  /// @param entries their times in ticks by now; sources checked, by source, and of each source
  ///                never decreasing
  /// @param period ticks from one time through the list to the next
  void begin(std::span<const ArrivalEntry> entries, std::uint64_t repeats, Duration period,
             Instant epoch, BitSet own_sources = ~BitSet{0}) {
    period_ = period;
    count_ = 0;
    while (!entries.empty()) {
      const auto source = static_cast<std::uint16_t>(entries.front().source);
      const auto same = [&](const ArrivalEntry& each) { return each.source == source; };
      const auto end = std::ranges::partition_point(entries, same);
      const auto length = static_cast<std::size_t>(end - entries.begin());
      if ((own_sources & bit(source)) != 0) {
        Part& part = parts_[count_++];
        part = {entries.first(length), 0, repeats, epoch, Instant::never(), source};
        go_to(part, 0);
      }
      entries = entries.subspan(length);
    }
    find_next();
  }

  /// Whether anything was listed.
  [[nodiscard]] bool has_any() const { return count_ > 0; }

  /// Nothing is to come any more, but of masked sources.
  [[nodiscard]] bool done() const { return !any_; }

  /// When the next one comes; never if all are done.
  [[nodiscard]] Instant time() const { return any_ ? time_ : Instant::never(); }

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
    const auto earlier = [&](const ArrivalEntry& each) { return time_of(part, each) < from; };
    do {
      const auto rest = part.entries.subspan(part.next);
      const auto first = std::ranges::partition_point(rest, earlier);
      go_to(part, part.next + static_cast<std::size_t>(first - rest.begin()));
    } while (part.time < from);
    find_next();
  }

 private:
  struct Part {
    std::span<const ArrivalEntry> entries;  ///< of one source
    std::size_t next;
    std::uint64_t rounds_left;
    Instant round_start;
    Instant time;  ///< of the next one; never if it is masked or done
    std::uint16_t source;
  };

  /// Null if none of it is listed.
  [[nodiscard]] Part* part_of(std::uint16_t source) {
    Part* const end = parts_.data() + count_;
    Part* const found = std::ranges::find(parts_.data(), end, source, &Part::source);
    return found == end ? nullptr : found;
  }

  [[nodiscard]] static Instant time_of(const Part& part, const ArrivalEntry& entry) {
    return part.round_start + Duration(static_cast<std::int64_t>(entry.time_ns));
  }

  void go_to(Part& part, std::size_t next) const {
    if (next == part.entries.size() && part.rounds_left > 0) {
      next = 0;
      part.round_start += period_;
      --part.rounds_left;
    }
    part.next = next;
    part.time = part.rounds_left == 0 ? Instant::never() : time_of(part, part.entries[next]);
  }

  void find_next() {
    time_ = Instant::never();
    for (Part* part = parts_.data(); part != parts_.data() + count_; ++part) {
      if (part->time >= time_) continue;
      time_ = part->time;
      next_ = part;
    }
    any_ = time_ < Instant::never();
  }

  // All zero before begin(), so that it takes no place in an image.
  bool any_ = false;  ///< something is to come
  Instant time_;
  Part* next_ = nullptr;
  std::size_t count_ = 0;  ///< of parts
  Duration period_;
  std::array<Part, Configuration::most_sources> parts_{};
};

}  // namespace latenz::hypervisor
