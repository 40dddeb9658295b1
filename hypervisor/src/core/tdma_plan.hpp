// SPDX-License-Identifier: Apache-2.0
// The configuration of the CPUs that are shared by slots, in ticks of their counter. Freestanding.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "clock.hpp"
#include "configuration.hpp"
#include "dispatcher_plan.hpp"
#include "late.hpp"
#include "trace.hpp"

namespace latenz::hypervisor {

class TdmaPlan {
 public:
  /// Arrivals are converted where they are. The configuration must live on.
  void make(const Configuration& configuration, const Clock& clock);

  /// What the dispatcher of a CPU is to do from a time on.
  [[nodiscard]] DispatcherPlan from(Instant epoch, std::uint32_t cpu) const {
    return {.mode = configuration_->mode,
            .slots = cpus_[cpu].slots,
            .sources = std::span(sources_).first(configuration_->sources),
            .epoch = epoch,
            .own_partitions = cpus_[cpu].partitions};
  }

  [[nodiscard]] BitSet cpus_with_slots() const {
    BitSet found = 0;
    for (std::uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
      found |= cpus_[cpu].slots.empty() ? 0 : bit(cpu);
    }
    return found;
  }
  /// Until each CPU has ended a cycle, if several have slots.
  [[nodiscard]] Duration wait_for_others() const {
    return std::has_single_bit(cpus_with_slots()) ? Duration() : longest_cycle_;
  }
  [[nodiscard]] BitSet partitions_of(std::uint32_t cpu) const { return cpus_[cpu].partitions; }
  [[nodiscard]] BitSet sources_of(std::uint32_t cpu) const { return cpus_[cpu].sources; }
  [[nodiscard]] std::size_t slots_of(std::uint32_t cpu) const { return cpus_[cpu].slots.size(); }

  [[nodiscard]] const Configuration& configuration() const { return *configuration_; }
  [[nodiscard]] std::span<const ArrivalEntry> arrivals() const {
    return {reinterpret_cast<const ArrivalEntry*>(configuration_->arrivals),
            configuration_->arrival_count};
  }
  /// Room for the records of a CPU's trace; empty if there is none to be.
  [[nodiscard]] std::span<TraceRecord> trace_of(std::uint32_t cpu) const {
    if ((configuration_->flags & Configuration::trace_on) == 0) return {};
    return {reinterpret_cast<TraceRecord*>(configuration_->trace) +
                configuration_->trace_records_before(cpu),
            configuration_->cpu[cpu].trace_records};
  }

  [[nodiscard]] PartitionIndex partition(std::uint16_t source) const {
    return sources_[source].partition;
  }
  [[nodiscard]] std::uint32_t interrupt(std::uint16_t source) const { return interrupts_[source]; }
  [[nodiscard]] bool is_device(std::uint16_t source) const {
    return (configuration_->source[source].flags & SourceEntry::is_device) != 0;
  }
  [[nodiscard]] bool comes_by_edge(std::uint16_t source) const {
    return (configuration_->source[source].flags & SourceEntry::by_edge) != 0;
  }

 private:
  /// What is of one CPU.
  struct Cpu {
    std::span<const PlannedSlot> slots;  ///< its cycle
    BitSet partitions;
    BitSet sources;
  };

  void plan_cpus(const Clock& clock);
  void plan_sources(const Clock& clock);
  [[nodiscard]] const Limit* planned_limit(const Clock& clock, std::uint32_t source);
  void convert_arrivals(const Clock& clock);

  const Configuration* configuration_ = nullptr;
  Duration longest_cycle_;
  std::array<std::uint32_t, Configuration::most_sources> interrupts_{};
  std::array<PlannedSource, Configuration::most_sources> sources_{};
  std::array<Cpu, Configuration::most_cpus> cpus_{};
  std::array<PlannedSlot, Configuration::most_slots> slots_{};  ///< by CPU
  std::array<Late<Limit>, Configuration::most_sources> limits_{};
  std::array<Duration, Configuration::most_distances> distances_{};
};

}  // namespace latenz::hypervisor
