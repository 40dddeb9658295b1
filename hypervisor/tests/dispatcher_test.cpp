// SPDX-License-Identifier: Apache-2.0
// What rules and simulations do not know of: late top handlers, full queues, guests that fault,
// learning, statistics.
#include "dispatcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fake_processor.hpp"
#include "latenz/distances.hpp"
#include "latenz/monitor.hpp"
#include "latenz/simulator.hpp"
#include "latenz/split_mix.hpp"
#include "random_system.hpp"
#include "roomy.hpp"
#include "two_partitions.hpp"

namespace {

using latenz::Duration;
using latenz::Handling;
using latenz::Instant;
using latenz::hypervisor::Mode;
using latenz::hypervisor::nobody;
using latenz::hypervisor::PlannedSlot;
using latenz::hypervisor::SourceStatistics;
using latenz::hypervisor::Top;
using Two = TwoPartitions<>;
using Small = TwoPartitions<4>;

constexpr Duration distance_60[] = {Duration(60)};
constexpr Duration distance_1[] = {Duration(1)};

void expect_balance(const SourceStatistics& statistics) {
  EXPECT_EQ(statistics.raised, statistics.completed + statistics.pending() + statistics.dropped);
  EXPECT_EQ(statistics.raised,
            statistics.by_handling[0] + statistics.by_handling[1] + statistics.by_handling[2]);
}

}  // namespace

// --- slots ---------------------------------------------------------------------------------------

TEST(Slots, BeforeTheFirstOneNobodyRunsAndItsEdgeIsTheEpoch) {
  const PlannedSlot slots[] = {{0, Duration(100)}};
  const auto dispatcher = std::make_unique<Roomy<latenz::hypervisor::Dispatcher>>();
  dispatcher->begin({.mode = Mode::carry, .slots = slots, .sources = {}, .epoch = Instant(1234)});
  EXPECT_EQ(dispatcher->next().partition, nobody);
  EXPECT_EQ(dispatcher->slot_end(), Instant(1234));
  dispatcher->start_slot();
  EXPECT_EQ(dispatcher->slot_start(), Instant(1234));
  EXPECT_EQ(dispatcher->slot_end(), Instant(1334));
  EXPECT_EQ(dispatcher->next().partition, 0);
}

TEST(Slots, EdgesAreAbsoluteHoweverManyCyclesHavePassed) {
  const PlannedSlot slots[] = {{0, Duration(6'000'001)}, {1, Duration(333)}, {0, Duration(17)}};
  const std::int64_t offsets[] = {0, 6'000'001, 6'000'334};
  constexpr std::int64_t cycle = 6'000'351;
  const auto dispatcher = std::make_unique<Roomy<latenz::hypervisor::Dispatcher>>();
  dispatcher->begin({.mode = Mode::carry, .slots = slots, .sources = {}, .epoch = Instant(99)});
  for (std::int64_t k = 0; k < 15'000'000; ++k) {  // a day of such cycles
    for (std::size_t i = 0; i < 3; ++i) {
      dispatcher->start_slot();
      ASSERT_EQ(dispatcher->slot(), i);
      ASSERT_EQ(dispatcher->slot_start(), Instant(99 + (k * cycle) + offsets[i]));
    }
  }
}

TEST(Slots, OneForEverNeverEnds) {
  const PlannedSlot slots[] = {{0, Duration::unbounded()}};
  const auto dispatcher = std::make_unique<Roomy<latenz::hypervisor::Dispatcher>>();
  dispatcher->begin({.mode = Mode::plain, .slots = slots, .sources = {}, .epoch = Instant(99)});
  dispatcher->start_slot();
  EXPECT_EQ(dispatcher->slot_end(), Instant::never());
}

// --- top handlers that are late ------------------------------------------------------------------

TEST(LateTopHandler, IsJudgedByWhoeverOwnedTheSlotWhenTheIrqArrived) {
  Two two(Mode::paper, {Two::guarded(distance_1, 20)});
  two.start_slot();
  two.start_slot();  // partition 1's, at 100
  EXPECT_EQ(two.raise(0, Instant(99), Instant(105)).handling, Handling::interposed);
  EXPECT_EQ(two.raise(0, Instant(100), Instant(106)).handling, Handling::direct);
  two.start_slot();  // at 200
  EXPECT_EQ(two.raise(0, Instant(199), Instant(206)).handling, Handling::direct);
  two.start_slot();
  two.start_slot();
  EXPECT_EQ(two.raise(0, Instant(299), Instant(400)).handling, Handling::interposed);
  EXPECT_EQ(two.raise(0, Instant(399), Instant(401)).handling, Handling::direct);
}

TEST(LateTopHandler, GetsNoJobOnceItsOwnSlotHasBegun) {
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    Two two(mode, {Two::guarded(distance_1, 20)});
    two.start_slot();
    two.start_slot();
    EXPECT_TRUE(two.raise(0, Instant(99), Instant(105)).accepted);
    EXPECT_FALSE(two.settle().interposed) << "R5";
    two.start_slot();
    EXPECT_EQ(two.settle().interposed, mode == Mode::carry) << "pending when its slot ended";
  }
}

TEST(LateTopHandler, OfAnIrqFromTheOwnSlotsEndGetsTheJobOfThatEnd) {
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    Two two(mode, {Two::guarded(distance_1, 20)});
    for (int i = 0; i < 3; ++i) {
      two.start_slot();
    }
    EXPECT_EQ(two.raise(0, Instant(199), Instant(205)).handling, Handling::direct);
    EXPECT_EQ(two.settle().interposed, mode == Mode::carry);
  }
}

TEST(LateTopHandler, DecidesAsAPunctualOneWouldHave) {
  SystemGenerator generator(3);
  for (int round = 0; round < 500; ++round) {
    const latenz::System system = generator.system();
    const auto times = generator.arrivals(system, 10);
    for (const latenz::Mode mode : {latenz::Mode::paper, latenz::Mode::carry}) {
      const PlannedSystem planned(system, mode);
      const auto decisions = [&](std::int64_t late) {
        auto& dispatcher = FakeProcessor<>::dispatcher();
        std::vector<Top> tops;
        for (std::size_t i = 0; i < times.size(); ++i) {
          const auto source = static_cast<std::uint16_t>(i);
          dispatcher.begin(planned.plan());
          for (const std::int64_t at : times[i]) {
            while (dispatcher.slot_end() <= Instant(at + late)) {
              dispatcher.start_slot();
            }
            tops.push_back(dispatcher.raise(source, Instant(at), Instant(at + late)));
          }
        }
        return tops;
      };
      const std::vector<Top> punctual = decisions(0);
      for (const std::int64_t late : {1, 7, 1000, 100'000}) {
        const std::vector<Top> tops = decisions(late);
        for (std::size_t i = 0; i < tops.size(); ++i) {
          ASSERT_EQ(tops[i].handling, punctual[i].handling) << round << ", " << late;
          ASSERT_EQ(tops[i].accepted, punctual[i].accepted) << round << ", " << late;
        }
      }
    }
  }
}

// --- jobs ----------------------------------------------------------------------------------------

TEST(Job, IsCutOffWhenItsBudgetIsUsedUp) {
  Two two(Mode::paper, {Two::guarded(distance_60, 20)});
  two.start_slot();
  two.arrive(0, 10);
  EXPECT_TRUE(two.next().job_started);
  EXPECT_EQ(two.next().budget, Duration(20));
  two.charge(Duration(15));
  EXPECT_EQ(two.next().budget, Duration(5));
  two.charge(Duration(7));  // the timer was late
  const auto end = two.next();
  EXPECT_TRUE(end.job_ended);
  EXPECT_TRUE(end.overrun);
  EXPECT_EQ(two.statistics(0).overruns, 1U);
  EXPECT_EQ(two.next().partition, 0);
  EXPECT_EQ(two.statistics(0).pending(), 1U) << "the rest waits for its own slot";
}

TEST(Job, ThatEndsWithItsBudgetAndItsBottomHandlerHasNotOverrun) {
  Two two(Mode::paper, {Two::guarded(distance_60, 20), Two::plain(1, 20)});
  two.start_slot();
  two.arrive(0, 10);
  two.arrive(1, 11);
  two.settle();
  EXPECT_EQ(two.execute(20, 40).source, 0);
  const auto end = two.next();
  EXPECT_TRUE(end.job_ended);
  EXPECT_FALSE(end.overrun);
}

TEST(Job, OnlyOneRunsAndTheyStartInTheOrderInWhichTheyWereReleased) {
  constexpr Duration slot(100);
  const PlannedSlot slots[] = {{0, slot}, {1, slot}, {2, slot}};
  auto source = Two::guarded(distance_1, 20);
  std::vector<latenz::hypervisor::PlannedSource> sources;
  for (std::uint8_t partition = 0; partition < 3; ++partition) {
    source.partition = partition;
    sources.push_back(source);
  }
  auto& dispatcher = FakeProcessor<>::dispatcher();
  dispatcher.begin({.mode = Mode::carry, .slots = slots, .sources = sources, .epoch = {}});
  dispatcher.start_slot();
  const auto arrive = [&](std::uint16_t index, std::int64_t at) {
    return dispatcher.raise(index, Instant(at), Instant(at));
  };
  arrive(2, 50);
  arrive(0, 60);  // direct, accepted
  arrive(0, 62);
  arrive(1, 70);  // interposed, but its own slot begins first
  arrive(2, 75);
  dispatcher.start_slot();  // partition 0's jobs are released, 1's dropped
  arrive(2, 110);
  const std::uint16_t order[] = {2, 2, 0, 0, 2};
  for (const std::uint16_t expected : order) {
    const auto start = dispatcher.next();
    ASSERT_TRUE(start.job_started);
    EXPECT_EQ(start.job_source, expected);
    EXPECT_EQ(start.partition, expected);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(dispatcher.next().settled()) << "no other starts meanwhile";
    }
    dispatcher.charge(Duration(20));
    EXPECT_TRUE(dispatcher.next().job_ended);
  }
  EXPECT_EQ(dispatcher.next().partition, 1);
  dispatcher.start_slot();  // partition 2 owns it; partition 1's accepted IRQ is still pending
  EXPECT_EQ(dispatcher.next().job_source, 1);
}

TEST(Job, KeepsItsPartitionWhenASlotBegins) {
  Two two(Mode::carry, {Two::guarded(distance_60, 20)});
  two.start_slot();
  two.arrive(0, 95);
  EXPECT_TRUE(two.settle().interposed);
  two.charge(Duration(5));
  two.start_slot();
  EXPECT_TRUE(two.settle().interposed) << "R5: it has started, and goes on in its own slot";
  EXPECT_TRUE(two.execute(15, 120).any);
  EXPECT_TRUE(two.next().job_ended);
  EXPECT_EQ(two.jobs_started, 1);
}

TEST(FinishedBottomHandler, IsNoneWhenNothingIsPendingOrNobodyRuns) {
  Two two(Mode::carry, {Two::guarded(distance_60, 20)});
  EXPECT_FALSE(two.finish_bottom(Instant(0)).any);
  two.start_slot();
  two.settle();
  EXPECT_FALSE(two.finish_bottom(Instant(1)).any);
  two.arrive(0, 10);
  EXPECT_FALSE(two.finish_bottom(Instant(11)).any) << "partition 0 runs";
  two.settle();
  EXPECT_TRUE(two.finish_bottom(Instant(12)).any);
  EXPECT_FALSE(two.finish_bottom(Instant(12)).any) << "a guest says so twice";
  EXPECT_TRUE(two.next().job_ended);
  EXPECT_TRUE(two.idle());
}

// --- queues that are full ------------------------------------------------------------------------

TEST(FullQueue, LosesNoIrqAndKeepsTheOrderOfEachSource) {
  Small small(Mode::carry, {Small::guarded(distance_1, 1), Small::plain(1, 1)});
  small.start_slot();
  for (int i = 0; i < 20; ++i) {
    const Top top = small.arrive(static_cast<std::uint16_t>(i % 2), 10 + i);
    EXPECT_EQ(top.asked, i < 4 && i % 2 == 0) << "nobody is asked about what finds no room";
    EXPECT_EQ(top.handling, i < 4 && i % 2 == 0 ? Handling::interposed : Handling::delayed);
  }
  EXPECT_EQ(small.queue(1).size(), 4U);
  small.start_slot();
  EXPECT_EQ(small.arrive(1, 100).handling, Handling::delayed) << "though it is its own slot";
  std::vector<std::uint16_t> order;
  std::int64_t end = 101;
  for (auto next = small.settle(); !small.queue(1).empty(); next = small.settle()) {
    ASSERT_EQ(next.partition, 1);
    const auto finished = small.execute(1, ++end);
    EXPECT_EQ(finished.timed, order.size() < 4);
    order.push_back(finished.source);
    expect_balance(small.statistics(0));
    expect_balance(small.statistics(1));
  }
  EXPECT_EQ(order.size(), 21U);
  EXPECT_TRUE(small.idle());
  for (std::uint16_t source = 0; source < 2; ++source) {
    const SourceStatistics& statistics = small.statistics(source);
    EXPECT_EQ(statistics.completed, 10U + source);
    EXPECT_EQ(statistics.overflowed, 8U + source);
    EXPECT_EQ(statistics.untimed, 8U + source);
    EXPECT_EQ(statistics.outside, 0U);
  }
  EXPECT_EQ(small.statistics(0).most_latency, Duration(104 - 12));
}

TEST(FullQueue, TakesInWhatWaitedBeforeWhatComesLater) {
  Small small(Mode::plain, {Small::plain(0, 1), Small::plain(0, 1)});
  small.start_slot();
  for (int i = 0; i < 5; ++i) {
    small.arrive(0, i);
  }
  small.settle();
  small.execute(1, 10);
  EXPECT_TRUE(small.queue(0).full()) << "the fifth went in";
  small.arrive(1, 11);
  EXPECT_EQ(small.statistics(1).outside, 1U);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(small.execute(1, 20).source, 0);
  }
  EXPECT_EQ(small.execute(1, 20).source, 1);
}

TEST(FullQueue, OfOnePartitionIsNoMatterToAnother) {
  Small small(Mode::paper, {Small::plain(0, 1), Small::guarded(distance_1, 1)});
  small.start_slot();
  for (int i = 0; i < 100; ++i) {
    small.arrive(0, i);
  }
  EXPECT_TRUE(small.arrive(1, 99).accepted);
  EXPECT_EQ(small.settle().partition, 1);
}

TEST(FullQueue, NoMoreJobsAreGrantedThanCanBeRemembered) {
  Small small(Mode::paper, {Small::guarded(distance_1, 10)});
  small.start_slot();
  for (std::int64_t at = 10; at < 14; ++at) {
    small.arrive(0, at);
  }
  small.settle();
  for (std::int64_t end = 20; end < 24; ++end) {
    small.execute(1, end);  // the first job does the work of four, whose jobs remain
  }
  EXPECT_TRUE(small.next().job_ended);
  EXPECT_TRUE(small.arrive(0, 30).accepted);
  EXPECT_EQ(small.queue(1).size(), 1U);
  const Top fifth = small.arrive(0, 31);
  EXPECT_FALSE(fifth.asked);
  EXPECT_EQ(fifth.handling, Handling::delayed);
  for (int job = 0; job < 4; ++job) {
    EXPECT_TRUE(small.next().job_started);
    small.charge(Duration(10));
    EXPECT_TRUE(small.next().job_ended);
  }
  EXPECT_EQ(small.next().partition, 0);
  EXPECT_EQ(small.statistics(0).jobs, small.statistics(0).by_handling[1]);
}

// --- guests that fault ---------------------------------------------------------------------------

TEST(StoppedPartition, IsNeverRunAndItsIrqsAreCountedAsDropped) {
  Small small(Mode::carry, {Small::guarded(distance_1, 20), Small::plain(0, 5)});
  small.start_slot();
  for (int i = 0; i < 10; ++i) {
    small.arrive(0, 10 + i);
  }
  small.arrive(1, 21);
  EXPECT_TRUE(small.settle().interposed);
  small.charge(Duration(3));
  small.stop(1);
  const auto end = small.next();
  EXPECT_TRUE(end.job_ended);
  EXPECT_FALSE(end.overrun);
  EXPECT_EQ(small.next().partition, 0) << "no other job is left";
  EXPECT_EQ(small.statistics(0).dropped, 10U);
  EXPECT_FALSE(small.arrive(0, 30).asked);
  EXPECT_EQ(small.statistics(0).dropped, 11U);
  EXPECT_TRUE(small.execute(5, 40).any);
  EXPECT_TRUE(small.idle());
  small.start_slot();
  EXPECT_EQ(small.next().partition, nobody) << "its slots stay empty";
  small.start_slot();
  EXPECT_EQ(small.next().partition, 0);
  expect_balance(small.statistics(0));
  expect_balance(small.statistics(1));
}

TEST(RestartedPartition, KeepsItsIrqsAndLosesTheJobThatRan) {
  Two two(Mode::carry, {Two::guarded(distance_1, 20)});
  two.start_slot();
  two.arrive(0, 10);
  two.arrive(0, 20);
  two.settle();
  two.charge(Duration(3));
  two.restart(1);
  const auto end = two.next();
  EXPECT_TRUE(end.job_ended);
  EXPECT_FALSE(end.overrun);
  const auto second = two.next();
  EXPECT_TRUE(second.job_started);
  EXPECT_EQ(two.queue(1).size(), 2U);
  EXPECT_EQ(two.execute(20, 60).arrival, Instant(10)) << "from its beginning";
  EXPECT_EQ(two.statistics(0).pending(), 1U);
}

TEST(RestartedPartition, RunsAgainAfterItHadBeenStopped) {
  Two two(Mode::plain, {Two::plain(0, 5)});
  two.start_slot();
  two.arrive(0, 1);
  two.stop(0);
  two.restart(0);
  EXPECT_EQ(two.next().partition, 0);
  two.arrive(0, 2);
  EXPECT_EQ(two.execute(5, 7).arrival, Instant(2));
  expect_balance(two.statistics(0));
}

TEST(Begin, ForgetsEverything) {
  const auto sources = {Two::guarded(distance_60, 20)};
  Two two(Mode::carry, sources);
  two.start_slot();
  two.arrive(0, 10);
  two.next();
  two.stop(1);
  const PlannedSlot slots[] = {{0, Duration(100)}, {1, Duration(100)}};
  two.begin({.mode = Mode::paper, .slots = slots, .sources = sources, .epoch = {}});
  EXPECT_TRUE(two.idle());
  EXPECT_EQ(two.statistics(0).raised, 0U);
  two.start_slot();
  EXPECT_TRUE(two.arrive(0, 20).accepted);
  EXPECT_EQ(two.settle().partition, 1);
}

// --- learning ------------------------------------------------------------------------------------

namespace {

latenz::hypervisor::PlannedSource learning(std::span<const Duration> allowed, std::uint32_t length,
                                           std::uint64_t events) {
  auto source = Two::guarded(allowed, 1);
  source.learned = length;
  source.learn_events = events;
  return source;
}

/// Three distances by Algorithms 1 and 2; what is allowed beyond them.
latenz::DistanceVector learned_from(std::span<const std::int64_t> times,
                                    std::span<const Duration> allowed) {
  latenz::DistanceLearner<3> learner;
  for (const std::int64_t at : times) {
    learner.observe(Instant(at));
  }
  std::vector<Duration> vector(learner.observed().begin(), learner.observed().end());
  for (std::size_t i = vector.size(); i < allowed.size(); ++i) {
    vector.push_back(allowed[i]);
  }
  latenz::raise_to(vector, allowed);
  return latenz::DistanceVector(vector);
}

}  // namespace

TEST(Learning, MonitorIsSwitchedOnWithTheIrqAfterTheLastOneLearnedFrom) {
  Two two(Mode::paper, {learning(distance_1, 1, 3)});
  two.start_slot();
  for (const std::int64_t at : {10, 17, 30}) {
    const Top top = two.arrive(0, at);
    EXPECT_FALSE(top.asked);
    EXPECT_EQ(top.handling, Handling::delayed);
  }
  EXPECT_TRUE(two.arrive(0, 31).accepted) << "the monitor remembers what it accepted";
  EXPECT_FALSE(two.arrive(0, 37).accepted);
  EXPECT_TRUE(two.arrive(0, 38).accepted) << "7 apart as seen";
}

TEST(Learning, AllowsNoLessThanWasAllowedAndClosesTheVector) {
  constexpr Duration allowed[] = {Duration(10), Duration(11), Duration(12)};
  Two two(Mode::paper, {learning(allowed, 3, 5)});
  two.start_slot();
  for (const std::int64_t at : {10, 17, 30, 45, 55}) {
    two.arrive(0, at);
  }
  // observed 7, 20, 35; raised to 10, 20, 35
  std::array<Duration, latenz::longest_distance_vector> room{};
  const auto distances = two.monitor(0).guaranteed(room);
  EXPECT_EQ(std::vector(distances.begin(), distances.end()),
            (std::vector{Duration(10), Duration(20), Duration(35)}));
}

TEST(Learning, WhatTooFewEventsShowIsWhatIsAllowedAndWithoutThatNothingIs) {
  constexpr Duration allowed[] = {Duration(10), Duration(11), Duration(300)};
  Two some(Mode::paper, {learning(allowed, 3, 2)});
  some.start_slot();
  some.arrive(0, 10);
  some.arrive(0, 17);
  std::array<Duration, latenz::longest_distance_vector> room{};
  const auto distances = some.monitor(0).guaranteed(room);
  EXPECT_EQ(std::vector(distances.begin(), distances.end()),
            (std::vector{Duration(10), Duration(20), Duration(300)}));
  Two none(Mode::paper, {learning({}, 3, 1)});
  none.start_slot();
  none.arrive(0, 10);
  EXPECT_FALSE(none.arrive(0, 99).asked) << "an empty vector would allow everything";
}

TEST(Learning, AMonitorDecidesAlikeWhetherItsVectorIsClosedOrNot) {
  latenz::SplitMix64 random(7);
  int accepted = 0;
  int closed_more = 0;
  for (int round = 0; round < 2000; ++round) {
    std::array<Duration, 6> open{};
    for (Duration& each : open) each = Duration(static_cast<std::int64_t>(random.next() % 40));
    std::array<Duration, 6> closed = open;
    latenz::close_super_additively(closed);
    closed_more += closed != open ? 1 : 0;
    latenz::DistanceMonitor<6> one(open);
    latenz::DistanceMonitor<6> other(closed);
    Instant at;
    for (int i = 0; i < 60; ++i) {
      at += Duration(static_cast<std::int64_t>(random.next() % 30));
      const bool answer = one.accept(at);
      ASSERT_EQ(answer, other.accept(at)) << "round " << round;
      accepted += answer ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 20'000);
  EXPECT_GT(closed_more, 1500);
}

TEST(Learning, RunsAsSimulatedWithWhatWasLearned) {
  SystemGenerator generator(4);
  int learned = 0;
  for (int round = 0; round < 1000; ++round) {
    const latenz::System system = generator.system();
    const auto times = generator.arrivals(system, 14);
    for (const latenz::Mode mode : {latenz::Mode::paper, latenz::Mode::carry}) {
      PlannedSystem planned(system, mode);
      std::vector<latenz::Source> sources(system.sources().begin(), system.sources().end());
      std::vector<Instant> on(sources.size());
      for (std::size_t i = 0; i < sources.size(); ++i) {
        auto& monitor = sources[i].monitor;
        if (!monitor || times[i][6] == times[i][5]) {
          continue;
        }
        planned.learn(i, 3, 6);
        monitor = learned_from(std::span(times[i]).first(6), monitor->closed());
        on[i] = Instant(times[i][6]);
        ++learned;
      }
      const latenz::System afterwards(system.table().slots(), system.costs(), sources);
      Recorder expected;
      latenz::Simulator simulator(afterwards, mode, listed(times), INT64_MAX, false, expected);
      for (std::size_t i = 0; i < on.size(); ++i) {
        simulator.monitor_from(i, on[i]);
      }
      ASSERT_TRUE(simulator.run(INT64_MAX));
      FakeProcessor processor(system, planned, times, Sections::preemptible);
      processor.run();
      ASSERT_EQ(expected.joined(), processor.recorder().joined()) << "round " << round;
    }
  }
  EXPECT_GT(learned, 1000);
}

// --- statistics ----------------------------------------------------------------------------------

TEST(Statistics, AreThoseOfTheRecords) {
  SystemGenerator generator(5);
  for (int round = 0; round < 500; ++round) {
    const latenz::System system = generator.system();
    const auto times = generator.arrivals(system, 12);
    for (const latenz::Mode mode :
         {latenz::Mode::plain, latenz::Mode::paper, latenz::Mode::carry}) {
      const PlannedSystem planned(system, mode);
      FakeProcessor processor(system, planned, times, Sections::preemptible);
      processor.run();
      std::vector<latenz::SourceFigures> figures(system.sources().size());
      for (const auto& irq : processor.recorder().irqs) {
        figures[irq.source].add(irq.end - irq.arrival, irq.handling);
      }
      for (std::size_t i = 0; i < figures.size(); ++i) {
        const SourceStatistics& statistics =
            FakeProcessor<>::dispatcher().statistics(static_cast<std::uint16_t>(i));
        expect_balance(statistics);
        ASSERT_EQ(statistics.pending(), 0U);
        ASSERT_EQ(static_cast<std::int64_t>(statistics.completed), figures[i].n);
        ASSERT_EQ(statistics.least_latency, figures[i].min);
        ASSERT_EQ(statistics.most_latency, figures[i].max);
        ASSERT_TRUE(statistics.all_latencies.ns() == figures[i].sum);
        for (std::size_t handling = 0; handling < 3; ++handling) {
          ASSERT_EQ(static_cast<std::int64_t>(statistics.by_handling[handling]),
                    figures[i].by_handling[handling]);
        }
        ASSERT_LE(statistics.by_handling[1] + statistics.denied, statistics.asked);
        ASSERT_LE(statistics.overruns, statistics.jobs);
      }
    }
  }
}
