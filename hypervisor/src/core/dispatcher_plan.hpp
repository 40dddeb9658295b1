// SPDX-License-Identifier: Apache-2.0
// What the dispatcher is told when it begins: slots, sources, mode. Times are in any one unit; the
// hypervisor uses ticks of the system counter. Freestanding.
#pragma once

#include <cstdint>
#include <span>

#include "configuration.hpp"
#include "latenz/limiter.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

using PartitionIndex = std::uint8_t;
inline constexpr PartitionIndex nobody = 0xFF;

/// A slot of a length that need not be a whole number of ticks.
struct PlannedSlot {
  static constexpr std::uint32_t parts = 1'000'000'000;  ///< of a tick

  PartitionIndex partition;
  Duration length;              ///< whole ticks
  std::uint32_t remainder = 0;  ///< and so many parts of one, less than a whole
};

using Limit = Limiter<longest_distance_vector>;

struct PlannedSource {
  PartitionIndex partition;
  bool monitored;
  /// delta-minus(2), (3), ..., closed; of a source that learns: no learned distance gets shorter.
  std::span<const Duration> distances;
  Duration bottom;               ///< C_BH, the budget of its interposed jobs
  std::uint32_t learned;         ///< length of the vector to be learned; 0: nothing is learned
  std::uint64_t learn_events;    ///< arrivals to learn from, before the monitor is switched on
  const Limit* limit = nullptr;  ///< as it is at the beginning, it is copied; null: none (R7)
};

/// A bit for each partition, or for each source.
using BitSet = std::uint32_t;
constexpr BitSet bit(std::uint32_t index) { return BitSet{1} << index; }

/// Of one CPU. Whoever made it has checked it: there is a slot, slots take time, partitions and
/// sources are no more than Configuration has room for. Slots, sources and distances are not
/// copied.
struct DispatcherPlan {
  Mode mode;
  std::span<const PlannedSlot> slots;
  std::span<const PlannedSource> sources;  ///< those of other CPUs' partitions are left out
  Instant epoch;                           ///< the first slot begins
  BitSet own_partitions = ~BitSet{0};
};

}  // namespace latenz::hypervisor
