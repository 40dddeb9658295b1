// SPDX-License-Identifier: Apache-2.0
// Random systems of a realistic size, in microseconds, and tiny ones with slots of a few
// nanoseconds: those by which the adversary is judged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "latenz/arrivals.hpp"
#include "latenz/system.hpp"

/// Draws systems: 2 to 4 partitions, 1 to 4 sources, up to 2 more slots than partitions.
class MeasuredSystems {
 public:
  explicit MeasuredSystems(std::uint64_t seed) : random_(seed) {}

  latenz::System next(bool tiny) {
    partitions_ = 2 + random_.up_to(2);
    const latenz::Costs costs =
        tiny ? latenz::Costs{between(0, 1), between(0, 1), between(0, 1), between(0, 1)}
             : latenz::Costs{us(0, 50), us(0, 2), us(0, 5), us(0, 30)};
    const std::int64_t extra_slots = std::max<std::int64_t>(0, random_.up_to(4) - 2);
    std::vector<latenz::Slot> slots;
    cycle_ = latenz::Duration();
    for (std::int64_t i = 0; i < partitions_ + extra_slots; ++i) {
      const std::int64_t owner = i < partitions_ ? i : random_.up_to(partitions_ - 1);
      slots.push_back({static_cast<std::uint32_t>(owner), tiny ? between(2, 12) : us(200, 2000)});
      cycle_ += slots.back().length;
    }
    std::vector<latenz::Source> sources;
    for (std::int64_t i = 1 + random_.up_to(3); i > 0; --i) {
      sources.push_back(source(tiny));
    }
    return {slots, costs, std::move(sources)};
  }

 private:
  latenz::Duration between(std::int64_t least, std::int64_t most) {
    return latenz::Duration(least + random_.up_to(most - least));
  }
  latenz::Duration us(std::int64_t least, std::int64_t most) {
    return between(least * 1000, most * 1000);
  }
  latenz::Duration part(latenz::Duration whole) { return between(0, whole.ns()); }

  latenz::Source source(bool tiny) {
    const auto partition = static_cast<std::uint32_t>(random_.up_to(partitions_ - 1));
    const latenz::Duration top = tiny ? between(0, 1) : us(1, 30);
    const latenz::Duration bottom = tiny ? between(1, 3) : us(5, 200);
    const latenz::Duration period = between(cycle_.ns() / 2, cycle_.ns() * 5);
    std::vector<latenz::Duration> distances;
    const latenz::EventModel arrival = model(period, distances);
    return {partition, top, bottom, arrival, monitor(std::move(distances))};
  }

  /// A vector or periodic arrivals, with their first distances.
  latenz::EventModel model(latenz::Duration period, std::vector<latenz::Duration>& distances) {
    const std::int64_t kind = random_.up_to(3);
    if (kind == 3) {
      latenz::Duration distance;
      for (std::int64_t i = 1 + random_.up_to(3); i > 0; --i) {
        distance += part(period * 2);
        distances.push_back(distance);
      }
      distances.back() += latenz::Duration(1);
      return latenz::DistanceVector(distances);
    }
    const latenz::Duration jitter = kind == 0 ? latenz::Duration() : part(period * 2);
    const latenz::Duration least = kind == 2 ? part(period) : latenz::Duration();
    const latenz::Periodic periodic(period, jitter, least);
    const std::int64_t last = 2 + random_.up_to(3);
    for (std::int64_t q = 2; q <= last; ++q) {
      distances.push_back(periodic.delta(q));
    }
    distances.back() += latenz::Duration(distances.back() == latenz::Duration() ? 1 : 0);
    return periodic;
  }

  /// None, one that (but for a burst without end) every stream keeps, or a stricter one.
  std::optional<latenz::DistanceVector> monitor(std::vector<latenz::Duration> distances) {
    const std::int64_t kind = random_.up_to(2);
    if (kind == 0) {
      return std::nullopt;
    }
    if (kind == 2) {
      for (latenz::Duration& distance : distances) {
        distance += part(distance * 2) + latenz::Duration(1);
      }
      std::ranges::sort(distances);
    }
    return latenz::DistanceVector(distances);
  }

  latenz::Random random_;
  std::int64_t partitions_ = 0;
  latenz::Duration cycle_;
};
