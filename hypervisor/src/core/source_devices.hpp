// SPDX-License-Identifier: Apache-2.0
// The devices that raise sources' interrupts, at the board's interrupt controller. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "configuration.hpp"
#include "machine.hpp"
#include "tdma_plan.hpp"

namespace latenz::hypervisor {

/// Of the sources of one CPU. The interrupt of a source's device is active for as long as it is in
/// the queue: so it comes again, if its device still asks, when its bottom handler has ended.
class SourceDevices {
 public:
  /// @param plan must live on
  void begin(const TdmaPlan& plan, std::uint32_t cpu,
             const DistributorRegisters auto& distributor) {
    plan_ = &plan;
    std::size_t found = 0;
    for (BitSet rest = plan.sources_of(cpu); rest != 0; rest &= rest - 1) {
      const auto source = static_cast<std::uint16_t>(std::countr_zero(rest));
      if (!plan.is_device(source)) continue;
      distributor.route(plan.interrupt(source), cpu);
      if (plan.comes_by_edge(source)) distributor.trigger_by_edge(plan.interrupt(source));
      list_[found++] = source;
      bits_ |= bit(source);
    }
    sources_ = std::span(list_).first(found);
    const Configuration& configuration = plan.configuration();
    for (const ChannelEntry& each :
         std::span(configuration.channel).first(configuration.channels)) {
      bits_ |= bit(each.source);
    }
  }

  /// The sources that a guest raises: by a device, or by a channel's doorbell.
  [[nodiscard]] BitSet bits() const { return bits_; }

  /// The source of an interrupt; null if it is no device's.
  [[nodiscard]] const std::uint16_t* find(std::uint32_t id) const {
    const auto found =
        std::ranges::find_if(sources_, [&](auto each) { return plan_->interrupt(each) == id; });
    return found == sources_.end() ? nullptr : &*found;
  }

  /// Those of partitions that run.
  void enable(const DistributorRegisters auto& distributor, const auto& dispatcher) const {
    for (const std::uint16_t each : sources_) {
      if (!dispatcher.stopped(plan_->partition(each))) distributor.enable(plan_->interrupt(each));
    }
  }

  void disable(const DistributorRegisters auto& distributor) const {
    for (const std::uint16_t each : sources_) distributor.disable(plan_->interrupt(each));
  }

  /// The partition has been stopped, its queue is empty.
  void lose(const DistributorRegisters auto& distributor, PartitionIndex partition) const {
    for (const std::uint16_t each : sources_) {
      if (plan_->partition(each) == partition) mask(distributor, each);
    }
  }

  /// Until it is enabled again, which the one that waits then interrupts at once: a level is
  /// pending by itself, an edge is made so.
  void mask(const DistributorRegisters auto& distributor, std::uint16_t source) const {
    const std::uint32_t id = plan_->interrupt(source);
    distributor.disable(id);
    distributor.clear_active(id);
    if (plan_->comes_by_edge(source)) distributor.set_pending(id);
  }

 private:
  const TdmaPlan* plan_ = nullptr;
  std::span<const std::uint16_t> sources_;
  BitSet bits_ = 0;
  std::array<std::uint16_t, Configuration::most_sources> list_{};
};

}  // namespace latenz::hypervisor
