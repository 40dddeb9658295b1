// SPDX-License-Identifier: Apache-2.0
#include "latenz/simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/bound.hpp"
#include "random_system.hpp"
#include "recorder.hpp"

using counterexamples::costs;
using counterexamples::modes;
using counterexamples::system;
using counterexamples::vector;
using latenz::Activity;
using latenz::Duration;
using latenz::Handling;
using latenz::Instant;
using latenz::Mode;
using latenz::Simulator;
using latenz::Source;
using latenz::System;

namespace {

using Times = std::vector<std::vector<std::int64_t>>;
using Schedule = std::vector<Segment>;

constexpr Activity slot_switch = Activity::slot_switch;
constexpr Activity top = Activity::top_handler;
constexpr Activity bottom = Activity::bottom_handler;
constexpr Activity interposing = Activity::interposing;
constexpr Activity interposed = Activity::interposed_handler;

Recorder recorded(const System& system, Mode mode, const Times& times) {
  Recorder recorder;
  Simulator simulator(system, mode, listed(times), INT64_MAX, false, recorder);
  EXPECT_TRUE(simulator.run(INT64_MAX));
  return recorder;
}

Source source(std::uint32_t partition, std::int64_t top_ns, std::int64_t bottom_ns) {
  return {.partition = partition,
          .top = Duration(top_ns),
          .bottom = Duration(bottom_ns),
          .arrival = latenz::Unlimited(),
          .monitor = {}};
}

Source guarded(std::uint32_t partition, std::int64_t top_ns, std::int64_t bottom_ns,
               std::int64_t distance_ns) {
  Source guarded = source(partition, top_ns, bottom_ns);
  guarded.monitor = vector({distance_ns});
  return guarded;
}

/// Two slots of 100 ns, switches 0, C_Mon 2, C_sched 3, C_ctx 7 ns.
System two_slots(std::vector<Source> sources) {
  return system({100, 100}, costs(0, 2, 3, 7), std::move(sources));
}

/// Ends of the IRQs in the order of completion.
std::vector<std::int64_t> ends(const Recorder& recorder) {
  std::vector<std::int64_t> ends(recorder.irqs.size());
  std::ranges::transform(recorder.irqs, ends.begin(), [](const auto& irq) { return irq.end.ns(); });
  return ends;
}

std::vector<Handling> handlings(const Recorder& recorder) {
  std::vector<Handling> handlings(recorder.irqs.size());
  std::ranges::transform(recorder.irqs, handlings.begin(), &latenz::IrqRecord::handling);
  return handlings;
}

/// Slots that begin while nothing else happens would only lengthen the traces.
Schedule without_switches(const Recorder& recorder) {
  Schedule schedule = recorder.joined();
  std::erase_if(schedule, [](const Segment& each) { return each.activity == slot_switch; });
  return schedule;
}

}  // namespace

// --- The execution rules, each by a schedule worked out by hand
// -----------------------------------

TEST(Rule1, TopHandlersAndSlotSwitchesAreServedInTheOrderOfTheirTimesWithoutPreemption) {
  const System system =
      ::system({100, 100}, costs(10, 0, 0, 0), {source(0, 20, 1), source(1, 5, 4)});
  const Recorder recorder = recorded(system, Mode::plain, {{95}, {98}});
  // both came before the switch at 100, which therefore waits for both
  const Schedule expected = {{slot_switch, 0, 0, 0, 10}, {top, 0, 0, 95, 115},
                             {top, 1, 1, 115, 120},      {slot_switch, 1, 0, 120, 130},
                             {bottom, 1, 1, 130, 134},   {slot_switch, 0, 0, 200, 210},
                             {bottom, 0, 0, 210, 211}};
  EXPECT_EQ(recorder.joined(), expected);
}

TEST(Rule1, ArrivalsAtTheSameTimeAreServedInTheOrderOfTheSources) {
  const Recorder recorder =
      recorded(two_slots({source(0, 3, 10), source(0, 4, 10)}), Mode::plain, {{20}, {20}});
  EXPECT_EQ(recorder.irqs[0].top_start, Instant(20));
  EXPECT_EQ(recorder.irqs[1].top_start, Instant(23));
}

TEST(Rule2, InterposedJobPreemptsTheSlotsOwnerAndPaysForItsSwitches) {
  const System system = two_slots({source(0, 5, 40), guarded(1, 5, 20, 1000)});
  const Recorder recorder = recorded(system, Mode::paper, {{0}, {10}});
  const Schedule expected = {{top, 0, 0, 0, 5},           {bottom, 0, 0, 5, 10},
                             {top, 1, 1, 10, 17},          // C_TH + C_Mon
                             {interposing, 1, 1, 17, 27},  // C_sched + C_ctx
                             {interposed, 1, 1, 27, 47},  {interposing, 1, 1, 47, 54},  // C_ctx
                             {bottom, 0, 0, 54, 89}};
  EXPECT_EQ(without_switches(recorder), expected);
  EXPECT_EQ(handlings(recorder), (std::vector{Handling::interposed, Handling::direct}));
}

TEST(Rule2, BudgetIsExecutionTimeSoTopHandlersDoNotEatIt) {
  const System system = two_slots({source(0, 5, 1), guarded(1, 5, 20, 1000)});
  const Recorder recorder = recorded(system, Mode::paper, {{30}, {10}});
  const Schedule expected = {{top, 1, 1, 10, 17},        {interposing, 1, 1, 17, 27},
                             {interposed, 1, 1, 27, 30}, {top, 0, 0, 30, 35},
                             {interposed, 1, 1, 35, 52}, {interposing, 1, 1, 52, 59},
                             {bottom, 0, 0, 59, 60}};
  EXPECT_EQ(without_switches(recorder), expected);
}

TEST(Rule2, JobExecutesTheBudgetOfTheGrantedSourceOnWhateverIsFirstInItsQueue) {
  const System system = two_slots({source(1, 5, 30), guarded(1, 5, 10, 1000)});
  const Recorder recorder = recorded(system, Mode::paper, {{0}, {10}});
  const Schedule expected = {
      {top, 1, 0, 0, 5},           {top, 1, 1, 10, 17},      {interposing, 1, 1, 17, 27},
      {interposed, 1, 0, 27, 37},  // 10 of the other one's 30
      {interposing, 1, 1, 37, 44}, {bottom, 1, 0, 100, 120}, {bottom, 1, 1, 120, 130}};
  EXPECT_EQ(without_switches(recorder), expected);
}

TEST(Rule2, JobEndsEarlyWhenItsQueueIsEmptyAndRunsEvenIfItWasEmptyFromTheStart) {
  // the first job, of budget 30, does the work of both IRQs; the second finds nothing
  const System system = two_slots({guarded(1, 5, 30, 1000), guarded(1, 5, 10, 1000)});
  const Recorder recorder = recorded(system, Mode::paper, {{30}, {10}});
  // 10: top of s1 until 17, job of s1 until 10 of its own are done at 37 (top of s0 from 30 to 37)
  const Schedule expected = {
      {top, 1, 1, 10, 17},         {interposing, 1, 1, 17, 27}, {interposed, 1, 1, 27, 30},
      {top, 1, 0, 30, 37},         {interposed, 1, 1, 37, 44},  {interposing, 1, 1, 44, 51},
      {interposing, 1, 0, 51, 61}, {interposed, 1, 0, 61, 91},  {interposing, 1, 0, 91, 98}};
  EXPECT_EQ(without_switches(recorder), expected);
  // with the larger budget first, 30 ns are enough for 10 + 10 and the later jobs find nothing
  const System larger =
      two_slots({guarded(1, 5, 10, 1000), guarded(1, 0, 1, 1000), source(1, 0, 2)});
  const Recorder empty = recorded(larger, Mode::paper, {{10}, {12}, {0}});
  const Schedule found_nothing = {
      {top, 1, 0, 10, 17},         {top, 1, 1, 17, 19},        {interposing, 1, 0, 19, 29},
      {interposed, 1, 2, 29, 31},  {interposed, 1, 0, 31, 39}, {interposing, 1, 0, 39, 46},
      {interposing, 1, 1, 46, 56}, {interposed, 1, 0, 56, 57}, {interposing, 1, 1, 57, 64},
      {bottom, 1, 0, 100, 101},    {bottom, 1, 1, 101, 102}};
  EXPECT_EQ(without_switches(empty), found_nothing);
}

TEST(Rule3, BottomHandlersRunInTheirOwnSlotsAndResumeInTheNext) {
  const Recorder recorder = recorded(two_slots({source(0, 5, 250)}), Mode::plain, {{10}});
  const Schedule expected = {{top, 0, 0, 10, 15},
                             {bottom, 0, 0, 15, 100},
                             {bottom, 0, 0, 200, 300},
                             {bottom, 0, 0, 400, 465}};
  EXPECT_EQ(without_switches(recorder), expected);
}

TEST(Rule3, NobodyUsesWhatTheSlotsOwnerLeaves) {
  const Recorder recorder = recorded(two_slots({source(1, 5, 10)}), Mode::plain, {{10}});
  EXPECT_EQ(ends(recorder), (std::vector<std::int64_t>{110}));
}

TEST(Rule4, OneQueueForAllSourcesOfAPartitionInTheOrderOfTopHandlersAndNoIrqIsLost) {
  const System system = two_slots({source(0, 1, 10), source(0, 1, 20)});
  const Recorder recorder = recorded(system, Mode::plain, {{101, 102, 104}, {100, 103}});
  std::vector<std::uint32_t> order(recorder.irqs.size());
  std::ranges::transform(recorder.irqs, order.begin(), &latenz::IrqRecord::source);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 0, 0, 1, 0}));
  EXPECT_EQ(ends(recorder), (std::vector<std::int64_t>{220, 230, 240, 260, 270}));
}

TEST(Rule5, JobThatHasNotStartedWhenItsOwnSlotBeginsIsDroppedAndItsQueueRunsDirectly) {
  // top handlers until 105, the switch after them: the job of p1 never starts
  const System system = two_slots({source(0, 10, 1), guarded(1, 5, 20, 1000)});
  const Recorder recorder = recorded(system, Mode::paper, {{96}, {90}});
  const Schedule expected = {{top, 1, 1, 90, 97},
                             {top, 0, 0, 97, 107},
                             {bottom, 1, 1, 107, 127},
                             {bottom, 0, 0, 200, 201}};
  EXPECT_EQ(without_switches(recorder), expected);
}

TEST(Rule5, StartAtTheVeryInstantOfTheSwitchDoesNotCountButOneInstantBeforeDoes) {
  const System system = two_slots({guarded(1, 5, 20, 1000)});
  EXPECT_EQ(without_switches(recorded(system, Mode::paper, {{93}})),
            (Schedule{{top, 1, 0, 93, 100}, {bottom, 1, 0, 100, 120}}));
  // a job that has started goes on in its own slot, with its costs
  EXPECT_EQ(without_switches(recorded(system, Mode::paper, {{92}})),
            (Schedule{{top, 1, 0, 92, 99},
                      {interposing, 1, 0, 99, 109},
                      {interposed, 1, 0, 109, 129},
                      {interposing, 1, 0, 129, 136}}));
}

TEST(Rule6, SlotsAreHalfOpen) {
  const System system = two_slots({source(0, 5, 10)});
  const Recorder recorder = recorded(system, Mode::plain, {{99, 100, 200}});
  EXPECT_EQ(handlings(recorder),
            (std::vector{Handling::direct, Handling::delayed, Handling::direct}));
}

TEST(Rule6, CompletionComesBeforeTheSlotsEndAndTheSwitchBeforeTheArrival) {
  const System system =
      ::system({100, 100}, costs(10, 0, 0, 0), {source(0, 5, 15), source(1, 5, 1)});
  const Recorder recorder = recorded(system, Mode::plain, {{80}, {100}});
  const Schedule expected = {
      {slot_switch, 0, 0, 0, 10},    {top, 0, 0, 80, 85},   {bottom, 0, 0, 85, 100},  // just done
      {slot_switch, 1, 0, 100, 110}, {top, 1, 1, 110, 115}, {bottom, 1, 1, 115, 116}};
  EXPECT_EQ(recorder.joined(), expected);
  EXPECT_EQ(handlings(recorder), (std::vector{Handling::direct, Handling::direct}));
}

TEST(ModePaper, MonitorSeesForeignIrqsOnlyAndRemembersWhatItGranted) {
  const System system = two_slots({guarded(1, 0, 5, 60)});
  const Recorder recorder = recorded(system, Mode::paper, {{10, 40, 70, 150, 210}});
  // 40 is too close to 10; 70 is not; 150 is direct and leaves no trace; 210 is 140 after 70
  EXPECT_EQ(handlings(recorder),
            (std::vector{Handling::interposed, Handling::delayed, Handling::interposed,
                         Handling::direct, Handling::interposed}));
}

TEST(ModeCarry, AcceptedIrqCutByItsSlotsEndIsInterposedThen) {
  const System system = two_slots({guarded(0, 5, 40, 1000)});
  EXPECT_EQ(without_switches(recorded(system, Mode::carry, {{60}})),
            (Schedule{{top, 0, 0, 60, 67},
                      {bottom, 0, 0, 67, 100},
                      {interposing, 0, 0, 100, 110},
                      {interposed, 0, 0, 110, 117},
                      {interposing, 0, 0, 117, 124}}));
  EXPECT_EQ(without_switches(recorded(system, Mode::paper, {{60}})),
            (Schedule{{top, 0, 0, 60, 65}, {bottom, 0, 0, 65, 100}, {bottom, 0, 0, 200, 205}}));
}

TEST(ModePlain, MonitorIsNeitherAskedNorPaid) {
  const System system = two_slots({guarded(1, 5, 20, 1000)});
  EXPECT_EQ(without_switches(recorded(system, Mode::plain, {{10}})),
            (Schedule{{top, 1, 0, 10, 15}, {bottom, 1, 0, 100, 120}}));
}

// --- Against what others computed, and properties of random systems
// -------------------------------

TEST(Simulator, FindsInTheCounterexamplesWhatAnIndependentModelFound) {
  for (const Counterexample& each : counterexamples::all()) {
    for (const Mode mode : modes) {
      latenz::NoObserver nobody;
      Simulator simulator(each.system, mode, listed(each.arrivals), INT64_MAX, false, nobody);
      ASSERT_TRUE(simulator.run(INT64_MAX));
      for (std::size_t i = 0; i < each.expected.size(); ++i) {
        EXPECT_EQ(simulator.figures()[i].max.ns(),
                  each.expected[i].simulated[static_cast<std::size_t>(mode)])
            << each.name << ", source " << i;
      }
    }
  }
}

TEST(Simulator, LatencyMayCountFromTheTopHandlersStart) {
  const System system = ::system({100, 100}, costs(10, 0, 0, 0), {source(0, 5, 15)});
  latenz::NoObserver nobody;
  const Times times = {{0}};
  Simulator simulator(system, Mode::plain, listed(times), INT64_MAX, true, nobody);
  ASSERT_TRUE(simulator.run(INT64_MAX));
  EXPECT_EQ(simulator.figures()[0].max, Duration(20));  // the switch came first
}

TEST(Simulator, LeavesOutWhatExceedsTheNumberOfIrqsAskedFor) {
  latenz::NoObserver nobody;
  const System system = two_slots({source(0, 1, 1)});
  const Times times = {{1, 2, 3, 4, 5}};
  Simulator simulator(system, Mode::plain, listed(times), 3, false, nobody);
  ASSERT_TRUE(simulator.run(INT64_MAX));
  EXPECT_EQ(simulator.figures()[0].n, 3);
}

TEST(Simulator, MonitorSwitchedOnLaterLeavesEarlierIrqsAlone) {
  const System system = two_slots({guarded(1, 5, 20, 1000)});
  const Times times = {{10, 400}};
  Recorder recorder;
  Simulator simulator(system, Mode::paper, listed(times), INT64_MAX, false, recorder);
  simulator.monitor_from(0, Instant(400));
  ASSERT_TRUE(simulator.run(INT64_MAX));
  EXPECT_EQ(handlings(recorder), (std::vector{Handling::delayed, Handling::interposed}));
  EXPECT_EQ(ends(recorder), (std::vector<std::int64_t>{120, 437}));
}

namespace {

/// Figures from records, the plain way.
void expect_figures(std::span<const latenz::SourceFigures> figures, const Recorder& recorder) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    latenz::SourceFigures expected;
    for (const auto& irq : recorder.irqs) {
      if (irq.source == i) {
        expected.add(irq.end - irq.arrival, irq.handling);
      }
    }
    ASSERT_EQ(figures[i].n, expected.n);
    ASSERT_EQ(figures[i].min, expected.min);
    ASSERT_EQ(figures[i].max, expected.max);
    ASSERT_TRUE(figures[i].sum == expected.sum);
    ASSERT_TRUE(std::ranges::equal(figures[i].by_handling, expected.by_handling));
  }
}

void expect_no_overlap(const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    ASSERT_LT(schedule[i].start, schedule[i].end);
    ASSERT_TRUE(i == 0 || schedule[i - 1].end <= schedule[i].start);
  }
}

bool is_handler(const Segment& segment) {
  return segment.activity == bottom || segment.activity == interposed;
}

/// Each partition's handlers run in the order of its top handlers, each for exactly C_BH.
void expect_fifo_and_whole_handlers(const System& system, const Recorder& recorder) {
  for (std::uint32_t partition = 0; partition < system.partitions(); ++partition) {
    std::vector<Segment> executed;
    std::ranges::copy_if(recorder.schedule, std::back_inserter(executed), [&](const Segment& each) {
      return is_handler(each) && each.partition == partition;
    });
    auto next = executed.begin();
    Instant last_top = Instant::long_ago();
    for (const auto& irq : recorder.irqs) {
      const Source& source = system.sources()[irq.source];
      if (source.partition != partition) {
        continue;
      }
      ASSERT_GE(irq.top_start, last_top);
      last_top = irq.top_start;
      Duration time;
      for (; next != executed.end() && next->end <= irq.end.ns(); ++next) {
        ASSERT_EQ(next->source, irq.source);
        time += Duration(next->end - next->start);
      }
      ASSERT_EQ(time, source.bottom);
    }
    ASSERT_TRUE(next == executed.end());
  }
}

/// Handlers that are not interposed lie in slots of their own partition, after its switch.
void expect_own_slots(const System& system, const Recorder& recorder) {
  for (const Segment& segment : recorder.schedule) {
    if (segment.activity != bottom) {
      continue;
    }
    std::int64_t start = segment.start - (segment.start % system.table().cycle().ns());
    auto slot = system.table().slots().begin();
    for (; start + slot->length.ns() <= segment.start; ++slot) {
      start += slot->length.ns();
    }
    ASSERT_EQ(slot->partition, segment.partition);
    ASSERT_GE(segment.start, start + system.table().slot_switch().ns());
    ASSERT_LE(segment.end, start + slot->length.ns());
  }
}

/// What interposed jobs of a source execute and cost stays within one C'_BH for each grant.
void expect_budgets(const System& system, Mode mode, const Recorder& recorder) {
  std::int64_t allowed = 0;
  std::int64_t used = 0;
  for (const auto& irq : recorder.irqs) {
    const Source& source = system.sources()[irq.source];
    const bool may = irq.handling == Handling::interposed ||
                     (mode == Mode::carry && System::interposed(source, mode));
    allowed += may ? (source.bottom + system.costs().interposing()).ns() : 0;
  }
  for (const Segment& segment : recorder.schedule) {
    const bool counts = segment.activity == interposing || segment.activity == interposed;
    used += counts ? segment.end - segment.start : 0;
  }
  ASSERT_LE(used, allowed);
}

/// Between an IRQ's arrival and its top handler only top handlers and switches run (R1).
void expect_top_handlers_first(const Recorder& recorder) {
  for (const auto& irq : recorder.irqs) {
    for (const Segment& segment : recorder.schedule) {
      const bool between = segment.start < irq.top_start.ns() && segment.end > irq.arrival.ns();
      ASSERT_TRUE(!between || segment.activity == top || segment.activity == slot_switch);
    }
  }
}

/// In any window of one cycle the server takes no more than was promised.
void expect_promise(const System& system, const latenz::SystemBound& bound,
                    const Recorder& recorder) {
  for (std::size_t first = 0; first < recorder.schedule.size(); ++first) {
    const std::int64_t end = recorder.schedule[first].start + system.table().cycle().ns();
    std::int64_t taken = 0;
    for (std::size_t i = first; i < recorder.schedule.size(); ++i) {
      const Segment& each = recorder.schedule[i];
      if (each.activity != bottom) {
        taken += std::max<std::int64_t>(0, std::min(each.end, end) - each.start);
      }
    }
    ASSERT_LE(taken, bound.promise.per_cycle.ns());
  }
}

void expect_all(const System& system, Mode mode, const Times& times) {
  Recorder recorder;
  Simulator simulator(system, mode, listed(times), INT64_MAX, false, recorder);
  ASSERT_TRUE(simulator.run(INT64_MAX));
  std::size_t n = 0;
  for (const auto& each : times) {
    n += each.size();
  }
  ASSERT_EQ(recorder.irqs.size(), n);
  expect_figures(simulator.figures(), recorder);
  expect_no_overlap(recorder.schedule);
  expect_fifo_and_whole_handlers(system, recorder);
  expect_own_slots(system, recorder);
  expect_budgets(system, mode, recorder);
  expect_top_handlers_first(recorder);
  expect_promise(system, latenz::bound(system, mode, Duration(10'000'000)), recorder);
}

}  // namespace

TEST(Simulator, KeepsEveryInvariantOfRandomSystems) {
  SystemGenerator generator(11);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    const Times times = generator.arrivals(system, 20);
    for (const Mode mode : modes) {
      SCOPED_TRACE(round);
      expect_all(system, mode, times);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

namespace {

/// IRQs of one simulation, without looking at segments.
struct IrqList {
  static constexpr bool segments = false;
  std::vector<latenz::IrqRecord> irqs;
  std::size_t most_irqs = SIZE_MAX;

  void irq(const latenz::IrqRecord& record) { irqs.push_back(record); }
  static void segment(Activity /*activity*/, std::uint32_t /*partition*/, std::uint32_t /*source*/,
                      Instant /*start*/, Instant /*end*/) {}
  [[nodiscard]] bool full() const { return irqs.size() >= most_irqs; }
};

bool same(const std::vector<latenz::IrqRecord>& a, const std::vector<latenz::IrqRecord>& b) {
  return std::ranges::equal(a, b, [](const latenz::IrqRecord& x, const latenz::IrqRecord& y) {
    return x.source == y.source && x.handling == y.handling && x.arrival == y.arrival &&
           x.top_start == y.top_start && x.end == y.end;
  });
}

}  // namespace

TEST(Simulator, SkippingIdleTimeChangesNoIrq) {
  SystemGenerator generator(12);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    Times times = generator.arrivals(system, 20);
    for (auto& each : times) {  // pauses of many cycles
      for (std::size_t i = 0; i < each.size(); ++i) {
        each[i] += static_cast<std::int64_t>(i / 4) * 123'457;
      }
    }
    for (const Mode mode : modes) {
      IrqList list;
      Simulator skipping(system, mode, listed(times), INT64_MAX, false, list);
      ASSERT_TRUE(skipping.run(INT64_MAX));
      ASSERT_TRUE(same(list.irqs, recorded(system, mode, times).irqs)) << round;
    }
  }
}

TEST(Simulator, ManySmallStepsAndPausesEqualOneRun) {
  SystemGenerator generator(13);
  for (int round = 0; round < 500; ++round) {
    const System system = generator.system();
    const Times times = generator.arrivals(system, 20);
    for (const Mode mode : modes) {
      const Recorder whole = recorded(system, mode, times);
      Recorder pieces;
      Simulator simulator(system, mode, listed(times), INT64_MAX, false, pieces);
      pieces.most_irqs = 0;
      do {
        pieces.most_irqs += static_cast<std::size_t>(generator.up_to(3));
      } while (!simulator.run(1 + generator.up_to(3)));
      ASSERT_TRUE(same(pieces.irqs, whole.irqs));
      ASSERT_EQ(pieces.joined(), whole.joined());
    }
  }
}

TEST(Simulator, QueueOfAnOverloadGrowsAsLongAsNeeded) {
  const std::vector<std::int64_t> times(5000, 0);
  const Recorder recorder = recorded(two_slots({source(0, 0, 1)}), Mode::plain, {times});
  EXPECT_EQ(recorder.irqs.size(), 5000U);
  EXPECT_EQ(recorder.irqs.back().end, Instant((49 * 200) + 100));
}
