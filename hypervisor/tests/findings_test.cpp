// SPDX-License-Identifier: Apache-2.0
// Where beckert2014 is wrong or loose (docs/beckert2014.md), one test for each finding: what the
// dispatcher does there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "counterexamples.hpp"
#include "fake_processor.hpp"
#include "latenz/bound.hpp"
#include "two_partitions.hpp"

namespace {

using latenz::Duration;
using latenz::Handling;
using latenz::Instant;
using latenz::IrqRecord;
using latenz::Mode;
using HypervisorMode = latenz::hypervisor::Mode;
using Two = TwoPartitions<>;

const Counterexample& counterexample(const std::string& name) {
  static const std::vector<Counterexample> all = counterexamples::all();
  return *std::ranges::find(all, name, &Counterexample::name);
}

Recorder run(const Counterexample& example, Mode mode) {
  const PlannedSystem planned(example.system, mode);
  FakeProcessor processor(example.system, planned, example.arrivals, Sections::whole);
  processor.run();
  return processor.recorder();
}

Duration longest(const Recorder& recorder, std::uint32_t source) {
  Duration longest;
  for (const IrqRecord& irq : recorder.irqs) {
    if (irq.source == source) {
      longest = std::max(longest, irq.end - irq.arrival);
    }
  }
  return longest;
}

/// In the mode, with interrupts masked while contexts are switched: as long as an independent model
/// found, longer than the printed equation has it, and never longer than the sound bound.
void expect_found(const std::string& name, Mode mode, std::int64_t ExpectedFigures::* printed) {
  const Counterexample& example = counterexample(name);
  const auto bounds = latenz::bound(example.system, mode);
  const Recorder recorder = run(example, mode);
  const auto index = static_cast<std::size_t>(mode);
  for (std::uint32_t i = 0; i < example.expected.size(); ++i) {
    const Duration seen = longest(recorder, i);
    EXPECT_EQ(seen.ns(), example.expected[i].simulated[index]) << name << ", source " << i;
    EXPECT_LE(seen, bounds.queues[example.system.sources()[i].partition].latency);
  }
  EXPECT_GT(longest(recorder, 0).ns(), example.expected[0].*printed);
}

constexpr Duration far_apart[] = {Duration(1000)};

}  // namespace

TEST(Finding01, AnAcceptedIrqCutOffByItsSlotsEndIsInterposedThenInModeCarry) {
  Two two(HypervisorMode::carry, {Two::guarded(far_apart, 40)});
  two.start_slot();
  two.start_slot();
  EXPECT_EQ(two.arrive(0, 160).handling, Handling::direct);
  EXPECT_EQ(two.settle().partition, 1);
  two.charge(Duration(35));
  two.start_slot();
  const auto next = two.settle();
  EXPECT_TRUE(next.interposed);
  EXPECT_EQ(next.budget, Duration(40)) << "one whole budget";
  EXPECT_TRUE(two.execute(5, 220).any);
  EXPECT_TRUE(two.next().job_ended);

  expect_found("slot-end-cut", Mode::paper, &ExpectedFigures::eq16);
  EXPECT_EQ(longest(run(counterexample("slot-end-cut"), Mode::carry), 0), Duration(75'000));
}

TEST(Finding02, SourcesOfAPartitionShareOneQueueInTheOrderOfTheirTopHandlers) {
  Two two(HypervisorMode::plain, {Two::plain(1, 10), Two::plain(1, 20)});
  two.start_slot();
  two.arrive(1, 10);
  two.arrive(0, 20);
  two.arrive(1, 30);
  two.start_slot();
  two.settle();
  for (const std::int64_t arrival : {10, 20, 30}) {
    EXPECT_EQ(two.execute(10, 150).arrival, Instant(arrival));
  }
  expect_found("shared-queue", Mode::plain, &ExpectedFigures::eq11);
}

TEST(Finding03, JobsOfOtherSourcesComeFirstInFirstOutAndAreInTheBound) {
  expect_found("other-interposed", Mode::carry, &ExpectedFigures::eq16);
}

TEST(Finding04, AJobPreemptsTheSlotsOwnerWhichGoesOnAfterwards) {
  Two two(HypervisorMode::paper, {Two::plain(0, 40), Two::guarded(far_apart, 20)});
  two.start_slot();
  two.arrive(0, 10);
  EXPECT_EQ(two.settle().partition, 0);
  two.charge(Duration(5));
  two.arrive(1, 15);
  EXPECT_EQ(two.settle().partition, 1);
  EXPECT_TRUE(two.execute(20, 60).any);
  EXPECT_EQ(two.settle().partition, 0);
  EXPECT_EQ(two.queue(0).head().arrival, Instant(10)) << "not from its beginning: nothing ended";
  expect_found("direct-hit-by-interposed", Mode::paper, &ExpectedFigures::eq11);
}

TEST(Finding05, EveryTopHandlerThatAsksAMonitorIsCharged) {
  expect_found("other-monitor-cost", Mode::carry, &ExpectedFigures::eq16);
}

TEST(Finding06, TheSwitchIsPaidOutOfTheSlotAndEdgesStayWhereTheyAre) {
  const Recorder recorder = run(counterexample("own-slot-switch"), Mode::plain);
  std::int64_t start = 0;
  for (const Segment& segment : recorder.joined()) {
    if (segment.activity == latenz::Activity::slot_switch) {
      EXPECT_EQ(segment.start, start);
      EXPECT_EQ(segment.end, start + 50'000);
      start += 1'000'000;
    }
  }
  EXPECT_GE(start, 2'000'000);
  expect_found("own-slot-switch", Mode::plain, &ExpectedFigures::eq11);
}

TEST(Finding07, ASlotEdgeInsideAJobIsServedAndTheJobGoesOn) {
  expect_found("switch-inside-interposed", Mode::carry, &ExpectedFigures::eq16);
}

TEST(Finding08, AfterAViolationJobsServeThePredecessorsButNoneGetsMoreThanItsBudget) {
  constexpr Duration distances[] = {Duration(10)};
  Two two(HypervisorMode::paper, {Two::guarded(distances, 10)});
  two.start_slot();
  EXPECT_TRUE(two.arrive(0, 10).accepted);
  EXPECT_FALSE(two.arrive(0, 11).accepted) << "the violation";
  EXPECT_TRUE(two.arrive(0, 30).accepted);
  for (const std::int64_t arrival : {10, 11}) {  // two jobs: the third IRQ is left
    const auto next = two.settle();
    EXPECT_TRUE(next.interposed);
    EXPECT_EQ(next.budget, Duration(10));
    EXPECT_EQ(two.execute(10, 60).arrival, Instant(arrival));
    EXPECT_TRUE(two.next().job_ended);
  }
  EXPECT_FALSE(two.settle().interposed);
  EXPECT_EQ(two.queue(1).head().arrival, Instant(30)) << "granted, and it waits for its own slot";
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    expect_found("one-violation-shifts-queue", mode, &ExpectedFigures::eq16);
  }
}

TEST(Finding09, TopHandlersThatDelayAJobAreInThePromiseToOtherPartitions) {
  // three top handlers of 30 us put off a job of 94 us into the window of the next, 600 us later
  constexpr std::int64_t us = 1000;
  constexpr std::int64_t slot = 10'000 * us;
  const auto source = [](std::int64_t top, std::int64_t distance) {
    return latenz::Source{.partition = 1,
                          .top = Duration(top),
                          .bottom = Duration(40 * us),
                          .arrival = counterexamples::vector({distance}),
                          .monitor = counterexamples::vector({distance})};
  };
  std::vector<latenz::Source> sources = {source(5 * us, 600 * us)};
  for (int i = 0; i < 3; ++i) {
    sources.push_back(source(30 * us, 100 * slot));
    sources.back().monitor.reset();
  }
  const latenz::System system = counterexamples::system(
      {slot, slot}, counterexamples::costs(0, us, 4 * us, 25 * us), sources);
  const std::int64_t first = 1000 * us;
  const Counterexample example = {
      .name = "activation-jitter",
      .system = system,
      .arrivals = {{first, first + (600 * us)}, {first}, {first}, {first}},
      .expected = {}};
  const Recorder recorder = run(example, Mode::paper);
  Duration worst;
  const std::int64_t window = 600 * us;
  for (const Segment& start : recorder.schedule) {
    Duration interposed;
    for (const Segment& each : recorder.schedule) {
      const bool counts = each.activity == latenz::Activity::interposing ||
                          each.activity == latenz::Activity::interposed_handler;
      const std::int64_t from = std::max(each.start, start.start);
      const std::int64_t to = std::min(each.end, start.start + window);
      interposed += Duration(counts ? std::max<std::int64_t>(0, to - from) : 0);
    }
    worst = std::max(worst, interposed);
  }
  EXPECT_GT(worst, Duration(94 * us)) << "Eq. (14): one C'_BH in 600 us";
  const auto promise = latenz::bound(system, Mode::paper).promise;
  Duration taken;
  for (const Segment& each : recorder.schedule) {
    if (each.activity != latenz::Activity::bottom_handler && each.end <= slot) {
      taken += Duration(each.end - each.start);
    }
  }
  EXPECT_LE(taken, promise.per_slot[0]);
}

TEST(Finding10, TheMonitorJudgesArrivalsNotStartsOfTopHandlers) {
  constexpr Duration distances[] = {Duration(60)};
  Two two(HypervisorMode::paper, {Two::guarded(distances, 5)});
  two.start_slot();
  EXPECT_TRUE(two.raise(0, Instant(10), Instant(30)).accepted);
  EXPECT_TRUE(two.raise(0, Instant(70), Instant(71)).accepted) << "41 after the other's start";
  two.start_slot();
  two.start_slot();
  EXPECT_TRUE(two.raise(0, Instant(200), Instant(200)).accepted);
  EXPECT_FALSE(two.raise(0, Instant(259), Instant(280)).accepted) << "80 after the other's start";
}

TEST(Finding11, BudgetsCountExecutionWhateverInterrupts) {
  Two two(HypervisorMode::paper, {Two::guarded(far_apart, 20), Two::plain(0, 10)});
  two.start_slot();
  two.arrive(0, 10);
  EXPECT_TRUE(two.settle().interposed);
  for (std::int64_t at = 20; at < 90; at += 10) {  // each top handler takes all but 1 of 10
    two.charge(Duration(1));
    two.arrive(1, at);
    EXPECT_TRUE(two.settle().interposed);
  }
  EXPECT_EQ(two.settle().budget, Duration(13));
  EXPECT_TRUE(two.execute(13, 99).any);
  const auto end = two.next();
  EXPECT_TRUE(end.job_ended);
  EXPECT_FALSE(end.overrun);
}

TEST(Finding12, DistancesAreNeverLearnedAgainstTimeZero) {
  auto source = Two::guarded({}, 1);
  source.learned = 5;
  source.learn_events = 6;
  Two two(HypervisorMode::paper, {source});
  two.start_slot();
  for (const std::int64_t at : {100, 4800, 10'000, 15'000, 20'000, 25'000}) {
    two.arrive(0, at);
  }
  std::array<Duration, latenz::longest_distance_vector> room{};
  const auto distances = two.monitor(0).guaranteed(room);
  EXPECT_EQ(std::vector(distances.begin(), distances.end()),
            (std::vector{Duration(4700), Duration(9900), Duration(14'900), Duration(19'900),
                         Duration(24'900)}));
}
