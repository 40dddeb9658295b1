// SPDX-License-Identifier: Apache-2.0
// Random TDMA systems with interrupts that keep their event models and come when it hurts: right at
// slot boundaries and as closely as allowed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "latenz/arrivals.hpp"
#include "latenz/system.hpp"
#include "random_distances.hpp"

/// Draws systems; every choice comes from one seed.
class SystemGenerator {
 public:
  explicit SystemGenerator(std::uint64_t seed) : random_(seed) {}

  /// Slots of 2 .. 12 ns, where boundaries are dense, or of some microseconds.
  latenz::System system() {
    scale_ = one_in(2) ? 1 : 997;
    const std::int64_t slot_switch = one_in(2) ? 0 : scaled(1, 2);
    std::vector<latenz::Slot> slots(1 + (random_() % 4));
    for (latenz::Slot& slot : slots) {
      slot = {.partition = static_cast<std::uint32_t>(random_() % slots.size()),
              .length = latenz::Duration(slot_switch + scaled(2, 12))};
    }
    std::vector<latenz::Source> sources;
    for (std::uint64_t n = 1 + (random_() % 4); n > 0; --n) {
      sources.push_back(source(slots[random_() % slots.size()].partition));
    }
    const latenz::Costs costs = {.slot_switch = latenz::Duration(slot_switch),
                                 .monitor = latenz::Duration(scaled(0, 1)),
                                 .schedule = latenz::Duration(scaled(0, 1)),
                                 .context_switch = latenz::Duration(scaled(0, 1))};
    return {slots, costs, sources};
  }

  /// Arrival times of each source.
  std::vector<std::vector<std::int64_t>> arrivals(const latenz::System& system, std::size_t n) {
    std::vector<std::vector<std::int64_t>> times;
    for (const latenz::Source& source : system.sources()) {
      times.push_back(stream(system.table(), source.arrival, n));
    }
    return times;
  }

  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % (static_cast<std::uint64_t>(most) + 1));
  }
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  std::int64_t scaled(std::int64_t least, std::int64_t most) {
    return scale_ * (least + up_to(most - least));
  }

 private:
  latenz::Source source(std::uint32_t partition) {
    latenz::Source source = {.partition = partition,
                             .top = latenz::Duration(scaled(0, 2)),
                             .bottom = latenz::Duration(scaled(1, 6)),
                             .arrival = latenz::Unlimited(),
                             .monitor = {}};
    const std::int64_t period = scaled(20, 200);
    const latenz::DistanceVector vector = distances(period);
    source.arrival = vector;
    if (one_in(2)) {
      source.arrival = latenz::Periodic(latenz::Duration(period), latenz::Duration(scaled(0, 60)),
                                        latenz::Duration(up_to(period / 4)));
    }
    if (!one_in(3)) {
      source.monitor = one_in(2) ? vector : distances(scaled(5, 200));
    }
    return source;
  }

  latenz::DistanceVector distances(std::int64_t around) {
    return latenz::DistanceVector(
        random_vector(random_, 1 + (random_() % 3), static_cast<std::uint64_t>(2 * around) + 1));
  }

  std::vector<std::int64_t> stream(const latenz::SlotTable& table, const latenz::EventModel& model,
                                   std::size_t n) {
    std::vector<std::int64_t> times;
    std::int64_t next = near_boundary(table, 0);
    while (times.size() < n) {
      for (std::size_t i = 0; i < times.size(); ++i) {
        const auto q = static_cast<latenz::Count>(times.size() - i + 1);
        next = std::max(next, times[i] + model.delta(q).ns());
      }
      times.push_back(next);
      if (one_in(3)) {
        next = near_boundary(table, next);
      }
    }
    return times;
  }

  /// A slot's start not long after this time, or an instant next to it.
  std::int64_t near_boundary(const latenz::SlotTable& table, std::int64_t after) {
    const std::int64_t cycle = table.cycle().ns();
    std::int64_t at = ((after / cycle) + 1) * cycle;
    for (auto slot = random_() % table.slots().size(); slot > 0; --slot) {
      at += table.slots()[slot - 1].length.ns();
    }
    return std::max<std::int64_t>(0, at - scaled(0, 3) + up_to(2));
  }

  std::mt19937_64 random_;
  std::int64_t scale_ = 1;
};

inline std::vector<latenz::Arrivals> listed(const std::vector<std::vector<std::int64_t>>& times) {
  std::vector<latenz::Arrivals> arrivals;
  for (const auto& each : times) {
    arrivals.emplace_back(latenz::ListedArrivals(each));
  }
  return arrivals;
}

/// The times must outlive the arrivals.
std::vector<latenz::Arrivals> listed(std::vector<std::vector<std::int64_t>>&& times) = delete;
