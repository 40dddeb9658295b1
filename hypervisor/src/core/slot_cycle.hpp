// SPDX-License-Identifier: Apache-2.0
// The TDMA cycle as it goes on: which slot it is, and who owned one before. Freestanding.
#pragma once

#include <cstddef>
#include <span>

#include "dispatcher_plan.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// Edges are sums of whole slots from the epoch on, rounded down to a tick, whenever advance() is
/// called: what a slot leaves of a tick is carried to the next one, so that none drifts.
class SlotCycle {
 public:
  /// Before the first slot, which begins at the epoch, nobody is the owner.
  void begin(std::span<const PlannedSlot> slots, Instant epoch) {
    slots_ = slots;
    epoch_ = epoch;
    index_ = slots.size() - 1;
    start_ = Instant::long_ago();
    end_ = epoch;
    carried_ = 0;
    owner_ = nobody;
  }

  /// The next slot begins, after the last one the first.
  void advance() {
    index_ = index_ + 1 < slots_.size() ? index_ + 1 : 0;
    start_ = end_;
    end_ += slots_[index_].length;
    carried_ += slots_[index_].remainder;
    if (carried_ >= PlannedSlot::parts) {
      carried_ -= PlannedSlot::parts;
      end_ += tick;
    }
    owner_ = slots_[index_].partition;
  }

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] Instant start() const { return start_; }
  [[nodiscard]] Instant end() const { return end_; }
  [[nodiscard]] PartitionIndex owner() const { return owner_; }

  /// Whoever owned the slot at a time before this one's end.
  [[nodiscard]] PartitionIndex owner_at(Instant time) const {
    return time >= start_ ? owner_ : earlier_owner(time);
  }

 private:
  /// Goes back slot by slot: a top handler is seldom late by more than one.
  [[nodiscard, gnu::noinline]] PartitionIndex earlier_owner(Instant time) const {
    std::size_t index = index_;
    Instant start = start_;
    std::uint32_t carried = before(index, carried_);  // at the start
    while (time < start) {
      if (start <= epoch_) return nobody;
      index = (index == 0 ? slots_.size() : index) - 1;
      const bool carries = carried < slots_[index].remainder;
      carried = before(index, carried);
      start = start - slots_[index].length - (carries ? tick : Duration());
    }
    return slots_[index].partition;
  }

  /// What was carried when a slot began, by what is when it has ended.
  [[nodiscard]] std::uint32_t before(std::size_t index, std::uint32_t carried) const {
    const std::uint32_t own = slots_[index].remainder;
    return carried < own ? carried + (PlannedSlot::parts - own) : carried - own;
  }

  static constexpr Duration tick{1};

  std::span<const PlannedSlot> slots_;
  Instant epoch_;
  Instant start_;
  Instant end_;
  std::size_t index_ = 0;
  std::uint32_t carried_ = 0;  ///< at the end of this slot, in parts of a tick
  PartitionIndex owner_ = 0;
};

}  // namespace latenz::hypervisor
