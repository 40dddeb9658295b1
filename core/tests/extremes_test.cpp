// SPDX-License-Identifier: Apache-2.0
// Times and counts near the end of 64 bits. Built a second time with every overflow trapped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/adversary.hpp"
#include "latenz/bound.hpp"
#include "latenz/event_model.hpp"
#include "latenz/printed_equations.hpp"
#include "latenz/simulator.hpp"
#include "random_distances.hpp"
#include "random_system.hpp"

using counterexamples::modes;
using latenz::Count;
using latenz::DistanceVector;
using latenz::Duration;
using latenz::endless;
using latenz::Mode;
using latenz::Periodic;
using latenz::Source;
using latenz::System;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62U;

/// 64 events may come at once, and 64 more every nanosecond.
DistanceVector dense() {
  Distances distances(64);
  distances.back() = Duration(1);
  return DistanceVector(distances);
}

std::vector<std::int64_t> near_the_end() {
  std::vector<std::int64_t> values;
  for (unsigned bits = 55; bits < 63; ++bits) {
    for (const std::int64_t beside : {-1, 0, 1}) {
      values.push_back((std::int64_t{1} << bits) + beside);
    }
  }
  values.insert(values.end(), {INT64_MAX - 1, INT64_MAX});
  return values;
}

/// Slots of 3 * 2^56 ns; a source of the first partition is as dense as can be told.
System dense_system(std::int64_t bottom) {
  const std::int64_t slot = 3 * (std::int64_t{1} << 56U);
  const Source source{.partition = 0,
                      .top = Duration(),
                      .bottom = Duration(bottom),
                      .arrival = dense(),
                      .monitor = counterexamples::vector({slot})};
  Source other = counterexamples::every_10_ms(1, 5);
  other.top = Duration();
  return counterexamples::system({slot, slot}, {}, {source, other});
}

/// A system whose every time is some hundred years times a random factor.
System stretched(SystemGenerator& generator) {
  const System small = generator.system();
  const std::int64_t unit = huge / 2000 / (1 + generator.up_to(100));
  std::vector<latenz::Slot> slots(small.table().slots().begin(), small.table().slots().end());
  for (latenz::Slot& slot : slots) {
    slot.length = slot.length * (unit / 1000);
  }
  std::vector<Source> sources(small.sources().begin(), small.sources().end());
  for (Source& source : sources) {
    source.top = source.top * (unit / 1000);
    source.bottom = source.bottom * (unit / 1000);
    source.arrival =
        Periodic(Duration(unit * (1 + generator.up_to(1000))), Duration(generator.up_to(huge)), {});
    if (source.monitor) {
      source.monitor = generator.one_in(2) ? dense() : counterexamples::vector({huge - 1});
      source.learns = generator.one_in(3);
    }
  }
  latenz::Costs costs = small.costs();
  costs.monitor = Duration(generator.up_to(huge));
  costs.schedule = Duration(generator.up_to(huge));
  costs.limit = Duration(generator.one_in(2) ? 0 : generator.up_to(huge));
  return {slots, costs, sources};
}

}  // namespace

TEST(Extremes, CountsEndAsTimesDo) {
  const DistanceVector model = dense();
  Count before = 0;
  for (const std::int64_t window : near_the_end()) {
    const Count count = model.eta(Duration(window));
    ASSERT_GE(count, before) << window;
    before = count;
  }
  EXPECT_EQ(model.eta(Duration(std::int64_t{1} << 58U)), endless);
  EXPECT_EQ(Periodic(Duration(1), Duration(huge), {}).eta(Duration(huge)), endless);
  EXPECT_EQ(latenz::next_count(endless), endless);
}

TEST(Extremes, DistancesOfAnyCountAreTold) {
  const Periodic periodic{Duration(huge), Duration(huge), Duration(3)};
  for (const Count q : near_the_end()) {
    EXPECT_GE(dense().delta(q), Duration());
    EXPECT_GE(periodic.delta(q), Duration());
  }
}

TEST(Extremes, SwitchesOfAnyWindowAreCounted) {
  const std::vector<latenz::Slot> slots(7, {.partition = 0, .length = Duration(1)});
  const latenz::SlotTable table(slots, Duration());
  EXPECT_EQ(table.switches(Duration(huge)), huge);
  EXPECT_EQ(table.switches(Duration(INT64_MAX - 1)), INT64_MAX - 1);
}

/// Jobs that are too many to be counted once made a promise negative and a bound too small.
TEST(Extremes, UncountedJobsMakeNoPromiseAndNoBound) {
  const System system = dense_system(1000);
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    const latenz::SystemBound result = latenz::bound(system, mode, Duration(huge));
    EXPECT_GE(result.promise.per_cycle, Duration(2000)) << "two jobs";
    EXPECT_GE(result.queues[1].latency, Duration(3 * (std::int64_t{1} << 56U) + 1005));
  }
}

TEST(Extremes, StretchedSystemsGiveNoNegativeBound) {
  SystemGenerator generator(3);
  for (int round = 0; round < 2000; ++round) {
    const System system = stretched(generator);
    for (const Mode mode : modes) {
      const latenz::SystemBound result = latenz::bound(system, mode, Duration(huge));
      for (std::size_t i = 0; i < result.queues.size(); ++i) {
        ASSERT_GE(result.queues[i].latency, Duration());
        ASSERT_GE(result.queues[i].busy_window, Duration());
        ASSERT_GE(result.enforced[i].latency, result.queues[i].latency);
      }
      ASSERT_GE(result.promise.per_cycle, Duration());
      ASSERT_GE(result.enforced_promise.per_cycle, result.promise.per_cycle);
    }
  }
}

/// Equations as printed, searches, and simulations of what they find, with limits and learning.
TEST(Extremes, StretchedSystemsAreSearchedAsFarAsTimesReach) {
  SystemGenerator generator(4);
  int searched = 0;
  for (int round = 0; round < 300; ++round) {
    const System system = stretched(generator);
    for (const Mode mode : modes) {
      const latenz::SystemBound bounds = latenz::bound(system, mode, Duration(huge));
      latenz::Adversary adversary(
          system, mode, bounds.enforced, 1, [] {}, latenz::Hostile::other_partitions);
      for (std::size_t i = 0; i < system.sources().size(); ++i) {
        for (const auto number :
             {latenz::PrintedEquation::Number::eq11, latenz::PrintedEquation::Number::eq16}) {
          ASSERT_GE(latenz::PrintedEquation(system, i, number, Duration(huge)).latency(),
                    Duration());
        }
        adversary.search(i, 20);
        const Duration found = adversary.attacks()[i].latency;
        ASSERT_LE(found, bounds.enforced[system.sources()[i].partition].latency);
        searched += found > Duration() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(searched, 100);
}

TEST(Extremes, LimitsOfCenturiesEndAsTimesDo) {
  for (const std::int64_t jitter : near_the_end()) {
    auto limiter = Periodic(Duration(huge), Duration(jitter), Duration(3)).limiter();
    for (const std::int64_t at : near_the_end()) {
      limiter.record(latenz::Instant(at));
      ASSERT_GE(limiter.earliest(), latenz::Instant(at));
    }
  }
}

TEST(Extremes, SimulationsNearTheEndOfTimeStop) {
  const System system = dense_system(1000);
  const std::vector<std::vector<std::int64_t>> times = {{huge, huge, huge + 5}, {huge + 1}};
  for (const Mode mode : modes) {
    latenz::NoObserver nobody;
    latenz::Simulator simulator(system, mode, listed(times), endless, false, nobody);
    ASSERT_TRUE(simulator.run(INT64_MAX));
    EXPECT_EQ(simulator.figures()[0].n + simulator.figures()[1].n, 4);
  }
}
