// SPDX-License-Identifier: Apache-2.0
// What debug builds check while they simulate.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"

namespace {

using namespace latenz;  // NOLINT(google-build-using-namespace)

System two_partitions() {
  const std::vector<Slot> slots = {{0, Duration(1000)}, {1, Duration(1000)}};
  const std::vector<Duration> monitor = {Duration(600)};
  const Costs costs{Duration(20), Duration(3), Duration(7), Duration(11)};
  return {slots,
          costs,
          {{0, Duration(5), Duration(40), Periodic(Duration(700), Duration(300), Duration(50)),
            DistanceVector(monitor)},
           {1, Duration(5), Duration(90), Periodic(Duration(900), Duration(), Duration()),
            DistanceVector(monitor)}}};
}

void simulate(Mode mode, bool too_strict) {
  const System system = two_partitions();
  std::vector<Arrivals> arrivals;
  arrivals.emplace_back(PeriodicArrivals(Duration(700), Duration(300), Duration(50), 1));
  arrivals.emplace_back(PeriodicArrivals(Duration(900), Duration(), Duration(), 2));
  std::vector<Duration> limits;
  const SystemBound bounds = bound(system, mode);
  for (const Source& source : system.sources()) {
    limits.push_back(too_strict ? source.bottom : bounds.queues[source.partition].latency);
  }
  NoObserver observer;
  Simulator<NoObserver> simulator(system, mode, std::move(arrivals), 100'000, false, observer);
  simulator.expect(limits);
  while (!simulator.run(INT64_MAX)) {
  }
}

TEST(SimulatorInvariants, HoldInEveryMode) {
  for (const Mode mode : {Mode::plain, Mode::paper, Mode::carry}) {
    simulate(mode, false);
  }
}

TEST(SimulatorInvariantsDeathTest, StopAtAnIrqAboveItsBound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(simulate(Mode::plain, true), "IRQ above its bound");
}

}  // namespace
