// SPDX-License-Identifier: Apache-2.0
#include "tdma_plan.hpp"

#include <algorithm>

namespace latenz::hypervisor {

void TdmaPlan::make(const Configuration& configuration, const Clock& clock) {
  configuration_ = &configuration;
  plan_cpus(clock);
  plan_sources(clock);
  convert_arrivals(clock);
}

void TdmaPlan::plan_cpus(const Clock& clock) {
  std::size_t planned = 0;
  for (std::uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    Cpu& own = cpus_[cpu] = {};
    for (std::uint32_t i = 0; i < configuration_->partitions; ++i) {
      own.partitions |= configuration_->partition[i].cpu == cpu ? bit(i) : 0;
    }
    for (std::uint32_t i = 0; i < configuration_->sources; ++i) {
      own.sources |=
          configuration_->cpu_of(configuration_->source[i].partition) == cpu ? bit(i) : 0;
    }
    const std::size_t first = planned;
    Duration cycle;
    for (std::uint32_t i = 0; i < configuration_->slots; ++i) {
      const SlotEntry& slot = configuration_->slot[i];
      if ((own.partitions & bit(slot.partition)) == 0) continue;
      slots_[planned++] = {.partition = static_cast<PartitionIndex>(slot.partition),
                           .length = clock.at_most(slot.length_ns),
                           .remainder = clock.remainder(slot.length_ns)};
      cycle += clock.at_least(slot.length_ns);
    }
    longest_cycle_ = std::max(longest_cycle_, cycle);
    own.slots = std::span(slots_).subspan(first, planned - first);
  }
}

void TdmaPlan::plan_sources(const Clock& clock) {
  for (std::size_t i = 0; i < distances_.size(); ++i) {
    distances_[i] = clock.at_most(static_cast<std::uint64_t>(configuration_->distance_ns[i]));
  }
  for (std::uint32_t i = 0; i < configuration_->sources; ++i) {
    const SourceEntry& source = configuration_->source[i];
    sources_[i] = {
        .partition = static_cast<PartitionIndex>(source.partition),
        .monitored = (source.flags & SourceEntry::monitored) != 0,
        .distances = std::span(distances_).subspan(source.first_distance, source.distances),
        .bottom = clock.at_least(source.bottom_ns),
        .learned = source.learned,
        .learn_events = source.learn_events,
        .limit = planned_limit(clock, i)};
    interrupts_[i] = source.interrupt;
  }
}

/// Rounded so that no stream that keeps its limit in nanoseconds exceeds it in ticks: the time from
/// one stamp to another can be too short by less than one.
const Limit* TdmaPlan::planned_limit(const Clock& clock, std::uint32_t source) {
  const SourceEntry& entry = configuration_->source[source];
  if (entry.limit_distances == 0 && entry.limit_period_ns == 0) return nullptr;
  const Duration jitter =
      clock.at_least(entry.limit_jitter_ns) + Duration(clock.is_exact() ? 0 : 1);
  Late<Limit>& limit = limits_[source];
  limit.make(std::span(distances_).subspan(entry.first_limit_distance, entry.limit_distances),
             clock.at_most(entry.limit_period_ns), jitter);
  return limit.operator->();
}

void TdmaPlan::convert_arrivals(const Clock& clock) {
  auto* entries = reinterpret_cast<ArrivalEntry*>(configuration_->arrivals);
  for (std::uint64_t i = 0; i < configuration_->arrival_count; ++i) {
    entries[i].time_ns = clock.nearest(entries[i].time_ns);
  }
}

}  // namespace latenz::hypervisor
