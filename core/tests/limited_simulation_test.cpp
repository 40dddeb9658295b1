// SPDX-License-Identifier: Apache-2.0
// Rule R7: sources that exceed their event models are masked.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/simulator.hpp"
#include "random_system.hpp"
#include "recorder.hpp"

using counterexamples::costs;
using counterexamples::modes;
using latenz::Activity;
using latenz::Duration;
using latenz::Instant;
using latenz::Mode;
using latenz::Simulator;
using latenz::Source;
using latenz::System;

namespace {

using Times = std::vector<std::vector<std::int64_t>>;

Recorder limited(const System& system, Mode mode, const Times& times, std::int64_t irqs) {
  Recorder recorder;
  Simulator simulator(system, mode, listed(times), irqs, false, recorder);
  simulator.limit_arrivals();
  EXPECT_TRUE(simulator.run(INT64_MAX));
  return recorder;
}

Source every_50(std::uint32_t partition) {
  Source source = counterexamples::every_10_ms(partition, 4);
  source.top = Duration(2);
  source.arrival = counterexamples::vector({50});
  return source;
}

/// Two slots of 100 ns; masking takes 3 ns.
System two_slots(std::vector<Source> sources) {
  latenz::Costs each = costs(0, 0, 0, 0);
  each.limit = Duration(3);
  return counterexamples::system({100, 100}, each, std::move(sources));
}

}  // namespace

TEST(Rule7, WhatExceedsTheLimitWaitsForTheFirstSlotStartThatPermitsIt) {
  const Recorder recorder =
      limited(two_slots({every_50(0)}), Mode::plain, {{10, 20, 30, 110}}, INT64_MAX);
  // 20 masks until 100, as 60 is not a slot's start; then 30 masks until 200, and 110 until 300
  const std::vector<Segment> expected = {
      {Activity::top_handler, 0, 0, 10, 12},   {Activity::bottom_handler, 0, 0, 12, 16},
      {Activity::top_handler, 0, 0, 20, 23},   {Activity::top_handler, 0, 0, 100, 105},
      {Activity::top_handler, 0, 0, 200, 205}, {Activity::bottom_handler, 0, 0, 205, 213},
      {Activity::top_handler, 0, 0, 300, 302}, {Activity::bottom_handler, 0, 0, 400, 404}};
  std::vector<Segment> found = recorder.joined();
  std::erase_if(found, [](const Segment& each) { return each.activity == Activity::slot_switch; });
  EXPECT_EQ(found, expected);
}

TEST(Rule7, LatencyRunsFromWhenTheIrqWasRaised) {
  const Recorder recorder = limited(two_slots({every_50(0)}), Mode::plain, {{10, 20}}, INT64_MAX);
  ASSERT_EQ(recorder.irqs.size(), 2U);
  EXPECT_EQ(recorder.irqs[1].arrival, Instant(20));
  EXPECT_EQ(recorder.irqs[1].top_start, Instant(100));
}

TEST(Rule7, MaskedIrqsAreCountedOnce) {
  const Recorder recorder = limited(two_slots({every_50(0)}), Mode::plain, {{10, 20, 30, 40}}, 3);
  EXPECT_EQ(recorder.irqs.size(), 3U);
}

TEST(Rule7, MonitorsJudgeTheTimeAtWhichAnIrqIsUnmasked) {
  Source source = every_50(1);
  source.monitor = counterexamples::vector({90});
  const Recorder recorder = limited(two_slots({source}), Mode::paper, {{10, 20}}, INT64_MAX);
  // the second arrives at 100, at the start of its own slot
  EXPECT_EQ(recorder.irqs[0].handling, latenz::Handling::interposed);
  EXPECT_EQ(recorder.irqs[1].handling, latenz::Handling::direct);
}

TEST(Rule7, ChangesNothingForSourcesThatKeepTheirModels) {
  SystemGenerator generator(1);
  for (int round = 0; round < 500; ++round) {
    const System system = generator.system();
    const Times times = generator.arrivals(system, 20);
    for (const Mode mode : modes) {
      Recorder recorder;
      Simulator simulator(system, mode, listed(times), INT64_MAX, false, recorder);
      ASSERT_TRUE(simulator.run(INT64_MAX));
      ASSERT_EQ(limited(system, mode, times, INT64_MAX).joined(), recorder.joined());
    }
  }
}
