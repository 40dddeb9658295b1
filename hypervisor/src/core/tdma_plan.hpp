// SPDX-License-Identifier: Apache-2.0
// The configuration of a shared CPU in ticks of its counter. Freestanding.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "clock.hpp"
#include "configuration.hpp"
#include "dispatcher_plan.hpp"
#include "late.hpp"

namespace latenz::hypervisor {

class TdmaPlan {
 public:
  /// Arrivals are converted where they are. The configuration must live on.
  void make(const Configuration& configuration, const Clock& clock);

  /// What the dispatcher is to do from a time on.
  [[nodiscard]] DispatcherPlan from(Instant epoch) const {
    return {.mode = configuration_->mode,
            .slots = std::span(slots_).first(configuration_->slots),
            .sources = std::span(sources_).first(configuration_->sources),
            .epoch = epoch};
  }

  [[nodiscard]] const Configuration& configuration() const { return *configuration_; }
  [[nodiscard]] std::span<const ArrivalEntry> arrivals() const {
    return {reinterpret_cast<const ArrivalEntry*>(configuration_->arrivals),
            configuration_->arrival_count};
  }
  [[nodiscard]] Duration arrival_period() const { return arrival_period_; }

  [[nodiscard]] PartitionIndex partition(std::uint16_t source) const {
    return sources_[source].partition;
  }
  [[nodiscard]] std::uint32_t interrupt(std::uint16_t source) const { return interrupts_[source]; }
  [[nodiscard]] bool is_device(std::uint16_t source) const {
    return (configuration_->source[source].flags & SourceEntry::is_device) != 0;
  }

 private:
  void plan_slots(const Clock& clock);
  void plan_sources(const Clock& clock);
  [[nodiscard]] const Limit* planned_limit(const Clock& clock, std::uint32_t source);
  void convert_arrivals(const Clock& clock);

  const Configuration* configuration_ = nullptr;
  Duration arrival_period_;
  std::array<std::uint32_t, Configuration::most_sources> interrupts_{};
  std::array<PlannedSource, Configuration::most_sources> sources_{};
  std::array<PlannedSlot, Configuration::most_slots> slots_{};
  std::array<Late<Limit>, Configuration::most_sources> limits_{};
  std::array<Duration, Configuration::most_distances> distances_{};
};

}  // namespace latenz::hypervisor
