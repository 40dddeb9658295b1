// SPDX-License-Identifier: Apache-2.0
// A dispatcher of two partitions with a slot of 100 each, called step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "dispatcher.hpp"

/// Partition 0 owns the first slot, partition 1 the second.
template <std::size_t Capacity = 16>
class TwoPartitions : public latenz::hypervisor::BasicDispatcher<Capacity> {
 public:
  using Mode = latenz::hypervisor::Mode;

  explicit TwoPartitions(Mode mode,
                         std::initializer_list<latenz::hypervisor::PlannedSource> sources)
      : sources_(sources), room_(std::make_unique<latenz::hypervisor::DispatcherRoom<Capacity>>()) {
    this->use(*room_);
    this->begin({.mode = mode, .slots = slots, .sources = sources_, .epoch = {}});
  }

  /// Of partition 1, with a monitor.
  static latenz::hypervisor::PlannedSource guarded(std::span<const latenz::Duration> distances,
                                                   std::int64_t bottom) {
    return {.partition = 1,
            .monitored = true,
            .distances = distances,
            .bottom = latenz::Duration(bottom),
            .learned = 0,
            .learn_events = 0};
  }

  static latenz::hypervisor::PlannedSource plain(latenz::hypervisor::PartitionIndex partition,
                                                 std::int64_t bottom) {
    return {.partition = partition,
            .monitored = false,
            .distances = {},
            .bottom = latenz::Duration(bottom),
            .learned = 0,
            .learn_events = 0};
  }

  /// A top handler that starts when its IRQ arrives.
  latenz::hypervisor::Top arrive(std::uint16_t source, std::int64_t at) {
    return this->raise(source, latenz::Instant(at), latenz::Instant(at));
  }

  /// All steps until a partition may run.
  latenz::hypervisor::Next settle() {
    for (;;) {
      const auto next = this->next();
      if (next.settled()) {
        return next;
      }
      jobs_started += next.job_started ? 1 : 0;
    }
  }

  /// The running partition executes that long, and its bottom handler ends then.
  latenz::hypervisor::Finished execute(std::int64_t length, std::int64_t end) {
    this->charge(latenz::Duration(length));
    return this->finish_bottom(latenz::Instant(end));
  }

  int jobs_started = 0;

 private:
  static constexpr latenz::Duration slot = latenz::Duration(100);
  static constexpr latenz::hypervisor::PlannedSlot slots[] = {{0, slot}, {1, slot}};
  std::vector<latenz::hypervisor::PlannedSource> sources_;
  std::unique_ptr<latenz::hypervisor::DispatcherRoom<Capacity>> room_;
};
