// SPDX-License-Identifier: Apache-2.0
// The TDMA cycle as it goes on: which slot it is, and who owned one before. Freestanding.
#pragma once

#include <cstddef>
#include <span>

#include "dispatcher_plan.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// Edges are sums of whole slots from the epoch on, whenever advance() is called: none drifts.
class SlotCycle {
 public:
  /// Before the first slot, which begins at the epoch, nobody is the owner.
  void begin(std::span<const PlannedSlot> slots, Instant epoch) {
    slots_ = slots;
    epoch_ = epoch;
    index_ = slots.size() - 1;
    start_ = Instant::long_ago();
    end_ = epoch;
    owner_ = nobody;
  }

  /// The next slot begins, after the last one the first.
  void advance() {
    index_ = index_ + 1 < slots_.size() ? index_ + 1 : 0;
    start_ = end_;
    end_ += slots_[index_].length;
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
    while (time < start) {
      if (start <= epoch_) return nobody;
      index = (index == 0 ? slots_.size() : index) - 1;
      start = start - slots_[index].length;
    }
    return slots_[index].partition;
  }

  std::span<const PlannedSlot> slots_;
  Instant epoch_;
  Instant start_;
  Instant end_;
  std::size_t index_ = 0;
  PartitionIndex owner_ = 0;
};

}  // namespace latenz::hypervisor
