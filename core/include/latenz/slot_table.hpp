// SPDX-License-Identifier: Apache-2.0
// The TDMA cycle: who owns the processor when, and how long a partition can be kept waiting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "latenz/event_model.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// A slot of the TDMA cycle. The switch to its partition is paid at its start, out of its length.
struct Slot {
  std::uint32_t partition = 0;
  Duration length;
};

/// The slots of one cycle, in order, the first one starting at time 0.
class SlotTable {
 public:
  /// @pre at least one slot; every slot longer than the switch; the cycle fits in 64 bits
  SlotTable(std::span<const Slot> slots, Duration slot_switch)
      : slots_(slots.begin(), slots.end()), slot_switch_(slot_switch) {
    for (const Slot& slot : slots_) {
      cycle_ += slot.length;
    }
    find_shortest_runs();
  }

  [[nodiscard]] std::span<const Slot> slots() const { return slots_; }
  [[nodiscard]] Duration cycle() const { return cycle_; }
  [[nodiscard]] Duration slot_switch() const { return slot_switch_; }

  /// The first start of a slot at or after a time >= 0.
  [[nodiscard]] Instant start_from(Instant at) const {
    Instant start = Instant() + (cycle_ * whole_parts(at - Instant(), cycle_));
    for (std::size_t i = 0; start < at; ++i) {
      start += slots_[i].length;
    }
    return start;
  }

  /// The most slot starts in any half-open window of this length.
  [[nodiscard]] Count switches(Duration window) const {
    if (window <= Duration()) {
      return 0;
    }
    if (window.is_unbounded()) {
      return endless;
    }
    const Count cycles = whole_parts(window - Duration(1), cycle_);
    const Duration rest = window - (cycle_ * cycles);
    const auto starts = std::ranges::lower_bound(starts_within_, rest) - starts_within_.begin();
    const auto slots = static_cast<Count>(slots_.size());
    return detail::saturating_add(detail::saturating_multiply(cycles, slots), starts);
  }

 private:
  void find_shortest_runs() {
    std::vector<Duration> runs(slots_.size());  // of `count` slots, from each slot on
    for (std::size_t count = 0; count < slots_.size(); ++count) {
      starts_within_.push_back(*std::ranges::min_element(runs));
      for (std::size_t first = 0; first < slots_.size(); ++first) {
        runs[first] += slots_[(first + count) % slots_.size()].length;
      }
    }
  }

  std::vector<Slot> slots_;
  /// The least time from a slot's start to the start of the 0th, 1st, ... slot after it: a
  /// delta-minus of starts.
  std::vector<Duration> starts_within_;
  Duration slot_switch_;
  Duration cycle_;
};

/// What a partition gets of the cycle: its slots less the switches at their starts.
class Supply {
 public:
  Supply(const SlotTable& table, std::uint32_t partition) : cycle_(table.cycle()) {
    Duration start;
    for (const Slot& slot : table.slots()) {
      if (slot.partition == partition) {
        add(start + table.slot_switch(), start + slot.length);
      }
      start += slot.length;
    }
    join_across_cycles();
  }

  /// Time in one cycle in which the partition can run.
  [[nodiscard]] Duration per_cycle() const { return per_cycle_; }

  /// The least time in which the partition surely gets `work`, wherever the window starts: the
  /// inverse of the supply function, exact, without a climb. 0 for no work.
  [[nodiscard]] Duration time_to_supply(Duration work) const {
    if (work <= Duration() || work.is_unbounded()) {
      return work;
    }
    if (per_cycle_ <= Duration()) {
      return Duration::unbounded();
    }
    const Count cycles = whole_parts(work - Duration(1), per_cycle_);
    const Duration rest = work - (per_cycle_ * cycles);
    Duration longest;
    for (std::size_t first = 0; first < intervals_.size(); ++first) {
      longest = std::max(longest, time_in_cycle(first, rest));
    }
    return longest + (cycle_ * cycles);
  }

  /// The most of any window of this length in which the partition cannot run.
  [[nodiscard]] Duration blocked(Duration window) const {
    if (window <= Duration() || intervals_.empty()) {
      return window;
    }
    const Count cycles = whole_parts(window, cycle_);
    const Duration rest = window - (cycle_ * cycles);
    Duration most;
    for (std::size_t first = 0; first < intervals_.size(); ++first) {
      most = std::max(most, rest - supplied_in_cycle(first, rest));
    }
    return most + ((cycle_ - per_cycle_) * cycles);
  }

 private:
  /// A time without supply and the supply that follows it.
  struct Interval {
    Duration gap;
    Duration supply;
  };

  void add(Duration from, Duration to) {
    intervals_.push_back({from - end_, to - from});
    per_cycle_ += to - from;
    end_ = to;
  }

  /// The first gap goes back to the last supply of the cycle before; supplies without a gap
  /// between them are one.
  void join_across_cycles() {
    if (intervals_.empty()) {
      return;
    }
    intervals_.front().gap += cycle_ - end_;
    std::vector<Interval> joined;
    for (const Interval& interval : intervals_) {
      if (interval.gap == Duration() && !joined.empty()) {
        joined.back().supply += interval.supply;
      } else {
        joined.push_back(interval);
      }
    }
    if (joined.size() > 1 && joined.front().gap == Duration()) {
      joined.back().supply += joined.front().supply;
      joined.erase(joined.begin());
    }
    intervals_ = std::move(joined);
  }

  [[nodiscard]] const Interval& interval(std::size_t index) const {
    return intervals_[index < intervals_.size() ? index : index - intervals_.size()];
  }

  /// From the start of a gap on; 0 < work <= per_cycle_.
  [[nodiscard]] Duration time_in_cycle(std::size_t first, Duration work) const {
    Duration time;
    for (std::size_t i = 0;; ++i) {
      const Interval& next = interval(first + i);
      if (work <= next.supply) {
        return time + next.gap + work;
      }
      work -= next.supply;
      time += next.gap + next.supply;
    }
  }

  /// From the start of a gap on; 0 <= window < cycle_.
  [[nodiscard]] Duration supplied_in_cycle(std::size_t first, Duration window) const {
    Duration supplied;
    for (std::size_t i = 0; i < intervals_.size() && window > interval(first + i).gap; ++i) {
      window -= interval(first + i).gap;
      supplied += std::min(window, interval(first + i).supply);
      window -= std::min(window, interval(first + i).supply);
    }
    return supplied;
  }

  std::vector<Interval> intervals_;
  Duration cycle_;
  Duration per_cycle_;
  Duration end_;
};

}  // namespace latenz
