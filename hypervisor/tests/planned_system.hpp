// SPDX-License-Identifier: Apache-2.0
// The dispatcher's plan of a system.
#pragma once

#include <cstddef>
#include <vector>

#include "dispatcher_plan.hpp"
#include "latenz/system.hpp"

/// Refers to the system, which must outlive it.
class PlannedSystem {
 public:
  PlannedSystem(const latenz::System& system, latenz::Mode mode)
      : mode_(static_cast<latenz::hypervisor::Mode>(mode)) {
    for (const latenz::Slot& slot : system.table().slots()) {
      slots_.push_back(
          {.partition = static_cast<latenz::hypervisor::PartitionIndex>(slot.partition),
           .length = slot.length});
    }
    for (const latenz::Source& source : system.sources()) {
      sources_.push_back(
          {.partition = static_cast<latenz::hypervisor::PartitionIndex>(source.partition),
           .monitored = source.monitor.has_value(),
           .distances = {},
           .bottom = source.bottom,
           .learned = 0,
           .learn_events = 0});
      if (source.monitor) {
        sources_.back().distances = source.monitor->closed();
      }
    }
  }

  /// R7: every source is limited to its arrival model.
  void limit(const latenz::System& system) {
    limits_.reserve(sources_.size());
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      limits_.push_back(system.sources()[i].arrival.limiter());
      sources_[i].limit = &limits_.back();
    }
  }

  /// The source learns that many distances from that many events; its monitor's are the allowed.
  void learn(std::size_t source, std::uint32_t length, std::uint64_t events) {
    sources_[source].learned = length;
    sources_[source].learn_events = events;
  }

  [[nodiscard]] latenz::hypervisor::DispatcherPlan plan() const {
    return {.mode = mode_, .slots = slots_, .sources = sources_, .epoch = epoch_};
  }

 private:
  latenz::hypervisor::Mode mode_;
  latenz::Instant epoch_;
  std::vector<latenz::hypervisor::PlannedSlot> slots_;
  std::vector<latenz::hypervisor::PlannedSource> sources_;
  std::vector<latenz::hypervisor::Limit> limits_;
};
