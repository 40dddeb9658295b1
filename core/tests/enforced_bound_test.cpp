// SPDX-License-Identifier: Apache-2.0
// What bounds promise while other partitions' sources do what they like and while monitors learn.
// LATENZ_HOSTILE_SYSTEMS asks for more systems than the usual number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"
#include "random_curves.hpp"
#include "random_system.hpp"
#include "recorder.hpp"

using counterexamples::modes;
using latenz::Activity;
using latenz::bound;
using latenz::Duration;
using latenz::Instant;
using latenz::Mode;
using latenz::Periodic;
using latenz::Promise;
using latenz::QueueBound;
using latenz::Simulator;
using latenz::Source;
using latenz::System;
using latenz::SystemBound;

namespace {

constexpr Duration horizon(10'000'000);

using Times = std::vector<std::vector<std::int64_t>>;

int rounds(int usual) {
  const char* text = std::getenv("LATENZ_HOSTILE_SYSTEMS");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? usual : std::stoi(text);
}

/// What a simulation is of, besides the system.
struct Scenario {
  Mode mode;
  bool limited;                  ///< by R7
  std::vector<Instant> monitor;  ///< when each source's monitor is switched on
};

Recorder recorded(const System& system, const Scenario& scenario, const Times& times) {
  Recorder recorder;
  Simulator simulator(system, scenario.mode, listed(times), INT64_MAX, false, recorder);
  if (scenario.limited) {
    simulator.limit_arrivals();
  }
  for (std::size_t i = 0; i < scenario.monitor.size(); ++i) {
    simulator.monitor_from(i, scenario.monitor[i]);
  }
  EXPECT_TRUE(simulator.run(INT64_MAX));
  return recorder;
}

std::vector<Duration> latencies(const System& system, const Recorder& recorder) {
  std::vector<Duration> most(system.sources().size());
  for (const latenz::IrqRecord& irq : recorder.irqs) {
    most[irq.source] = std::max(most[irq.source], irq.end - irq.arrival);
  }
  return most;
}

/// Time of the server in [from, to).
Duration lost(const std::vector<Segment>& schedule, std::int64_t from, std::int64_t to) {
  std::int64_t sum = 0;
  for (const Segment& each : schedule) {
    if (each.activity != Activity::bottom_handler) {
      sum += std::max<std::int64_t>(0, std::min(each.end, to) - std::max(each.start, from));
    }
  }
  return Duration(sum);
}

void expect_promise(const System& system, const Recorder& recorder, const Promise& promise) {
  const std::vector<Segment> schedule = recorder.joined();
  const std::int64_t cycle = system.table().cycle().ns();
  for (const Segment& each : schedule) {
    if (each.activity != Activity::bottom_handler) {
      ASSERT_LE(lost(schedule, each.start, each.start + cycle), promise.per_cycle);
    }
  }
  const auto slots = system.table().slots();
  std::int64_t start = 0;
  for (std::size_t i = 0; !schedule.empty() && start < schedule.back().end; ++i) {
    const std::int64_t end = start + slots[i % slots.size()].length.ns();
    ASSERT_LE(lost(schedule, start, end), promise.per_slot[i % slots.size()]);
    start = end;
  }
}

/// Times of a source that keeps nothing: at its monitor's distances, with others in between, or
/// many at once.
std::vector<std::int64_t> hostile(SystemGenerator& generator, const Source& source,
                                  const std::vector<std::int64_t>& legal) {
  std::vector<std::int64_t> times = legal;
  const std::int64_t kind = generator.up_to(3);
  if (kind == 0 && source.monitor) {
    latenz::DistanceMonitor<64> monitor(source.monitor->closed());
    for (std::int64_t& time : times) {
      const Instant at = std::max(monitor.earliest(), Instant(legal.front()));
      monitor.record(at);
      time = at.ns();
    }
  } else if (kind == 1) {
    for (std::size_t i = 0; i < legal.size(); ++i) {
      times.push_back(generator.up_to(legal.back()));
    }
  } else if (kind == 2) {
    for (std::int64_t n = generator.up_to(4); n >= 0; --n) {
      times.insert(times.end(), legal.begin(), legal.end());
    }
  }
  std::ranges::sort(times);
  return times;
}

/// The sources of one partition come as modelled, others as they like.
Times hostile_to(SystemGenerator& generator, const System& system, std::uint32_t partition) {
  Times times = generator.arrivals(system, 25);
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (system.sources()[i].partition != partition) {
      times[i] = hostile(generator, system.sources()[i], times[i]);
    }
  }
  return times;
}

enum class Costs { as_drawn, none_at_the_top };

/// A random system, in which some monitors may learn first; some top handlers have cost curves.
System drawn(SystemGenerator& generator, Costs kind, bool learning) {
  const System without = generator.system();
  std::mt19937_64 curves(static_cast<std::uint64_t>(without.table().cycle().ns()));
  const bool curved = kind == Costs::as_drawn && curves() % 2 == 0;
  const System system = curved ? with_curves(curves, without) : without;
  latenz::Costs costs = system.costs();
  std::vector<Source> sources(system.sources().begin(), system.sources().end());
  costs.limit = Duration(generator.scaled(0, 1));
  for (Source& source : sources) {
    source.learns = learning && source.monitor && generator.one_in(2);
  }
  if (kind == Costs::none_at_the_top) {
    costs.monitor = Duration();
    costs.limit = Duration();
    std::ranges::for_each(sources, [](Source& source) { source.top = Duration(); });
  }
  return {system.table().slots(), costs, sources};
}

std::vector<Instant> switched_on(SystemGenerator& generator, const System& system,
                                 const Times& times) {
  std::vector<Instant> from(times.size(), Instant::long_ago());
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (system.sources()[i].learns) {
      const auto last = static_cast<std::int64_t>(times[i].size()) - 1;
      from[i] = Instant(times[i][static_cast<std::size_t>(generator.up_to(last))]);
    }
  }
  return from;
}

void expect_within(const System& system, const Recorder& recorder,
                   const std::vector<QueueBound>& queues, std::uint32_t partition) {
  const std::vector<Duration> most = latencies(system, recorder);
  for (std::size_t i = 0; i < most.size(); ++i) {
    if (system.sources()[i].partition == partition) {
      ASSERT_LE(most[i], queues[partition].latency) << "source " << i;
    }
  }
}

/// Sources of other partitions have no model, hence no limit (R7).
System unlimited_beside(const System& system, std::uint32_t partition) {
  std::vector<Source> sources(system.sources().begin(), system.sources().end());
  for (Source& source : sources) {
    if (source.partition != partition) {
      source.arrival = latenz::Unlimited();
    }
  }
  return {system.table().slots(), system.costs(), sources};
}

bool has_sources_beside(const System& system, std::uint32_t partition) {
  return !std::ranges::all_of(system.sources(),
                              [&](const Source& each) { return each.partition == partition; });
}

/// Attacks every partition of a system in every mode.
void attack(SystemGenerator& generator, const System& system, bool limited) {
  for (const Mode mode : modes) {
    const SystemBound bounds = bound(system, mode, horizon);
    for (std::uint32_t partition = 0; partition < system.partitions(); ++partition) {
      const Times times = hostile_to(generator, system, partition);
      const Recorder recorder =
          recorded(system, {mode, limited, switched_on(generator, system, times)}, times);
      ASSERT_NO_FATAL_FAILURE(expect_within(system, recorder, bounds.enforced, partition));
      ASSERT_NO_FATAL_FAILURE(expect_promise(system, recorder, bounds.enforced_promise));
    }
  }
}

/// Q 10, V 10, W 20 ns; j of Q comes every 5 ns and is granted all of them, v of V seldom.
System backlog(bool learns) {
  Source often = counterexamples::every_10_ms(0, 2);
  often.top = Duration();
  often.arrival = Periodic(Duration(5), {}, {});
  often.monitor = counterexamples::vector({5});
  often.learns = learns;
  Source seldom = counterexamples::every_10_ms(1, 1);
  seldom.top = Duration();
  seldom.arrival = Periodic(Duration(1000), {}, {});
  seldom.monitor = counterexamples::vector({1000});
  return counterexamples::system({10, 10, 20}, {}, {often, seldom});
}

/// Every 5 ns; the monitor is switched on with the ninth, when six wait.
Times backlog_times() {
  return {{0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75}, {50}};
}

}  // namespace

TEST(EnforcedBound, IsExceededByNoArrivalsOfOtherPartitions) {
  SystemGenerator generator(11);
  for (int round = 0; round < rounds(250); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(attack(generator, drawn(generator, Costs::as_drawn, true), true));
  }
}

/// What monitors enforce, they enforce without R7: that is for top handlers.
TEST(EnforcedBound, OfInterposedJobsNeedsNoLimitAtTheTop) {
  SystemGenerator generator(12);
  for (int round = 0; round < rounds(250); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const System system = drawn(generator, Costs::none_at_the_top, true);
    ASSERT_NO_FATAL_FAILURE(attack(generator, system, false));
  }
}

/// Nothing keeps them to anything but their monitors, which is enough where top handlers cost
/// nothing.
TEST(EnforcedBound, BesideSourcesWithoutALimitRestsOnMonitors) {
  SystemGenerator generator(16);
  int bounded = 0;
  for (int round = 0; round < rounds(400); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const System drawn_system = drawn(generator, Costs::none_at_the_top, true);
    const std::uint32_t own = drawn_system.sources().front().partition;
    const System system = unlimited_beside(drawn_system, own);
    for (const Mode mode : modes) {
      const SystemBound bounds = bound(system, mode, horizon);
      const Times times = hostile_to(generator, system, own);
      const Recorder recorder =
          recorded(system, {mode, true, switched_on(generator, system, times)}, times);
      ASSERT_NO_FATAL_FAILURE(expect_within(system, recorder, bounds.enforced, own));
      ASSERT_NO_FATAL_FAILURE(expect_promise(system, recorder, bounds.enforced_promise));
      const bool beside = has_sources_beside(system, own);
      bounded += beside && bounds.enforced[own].verdict == latenz::Verdict::bounded ? 1 : 0;
    }
  }
  EXPECT_GT(bounded, rounds(400) / 2);
}

TEST(EnforcedBound, IsRefusedWhereTopHandlersWithoutALimitTakeTime) {
  Source first = counterexamples::every_10_ms(0, 1000);
  Source second = counterexamples::every_10_ms(1, 1000);
  second.top = Duration(1);
  second.arrival = latenz::Unlimited();
  const System system = counterexamples::system({1'000'000, 1'000'000}, {}, {first, second});
  for (const Mode mode : modes) {
    const SystemBound bounds = bound(system, mode);
    for (const QueueBound& queue : bounds.enforced) {
      EXPECT_EQ(queue.verdict, latenz::Verdict::unbounded);
      EXPECT_EQ(queue.reason, latenz::Reason::unlimited_arrivals);
      EXPECT_EQ(queue.culprit, 1U);
    }
    EXPECT_TRUE(bounds.enforced_promise.per_cycle.is_unbounded());
  }
}

TEST(EnforcedBound, IsNeverBelowTheOneForSourcesThatKeepTheirModels) {
  SystemGenerator generator(13);
  int above = 0;
  for (int round = 0; round < 1000; ++round) {
    const System system = drawn(generator, Costs::as_drawn, true);
    for (const Mode mode : modes) {
      const SystemBound bounds = bound(system, mode, horizon);
      for (std::size_t i = 0; i < bounds.queues.size(); ++i) {
        ASSERT_GE(bounds.enforced[i].latency, bounds.queues[i].latency);
        above += bounds.enforced[i].latency > bounds.queues[i].latency ? 1 : 0;
      }
      ASSERT_GE(bounds.enforced_promise.per_cycle, bounds.promise.per_cycle);
    }
  }
  EXPECT_GT(above, 500);
}

TEST(EnforcedBound, IsTheSameWhereNoOtherPartitionIsMonitored) {
  SystemGenerator generator(14);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    std::vector<Source> sources(system.sources().begin(), system.sources().end());
    for (Source& source : sources) {
      source.monitor =
          source.partition == sources.front().partition ? source.monitor : std::nullopt;
    }
    const System quiet(system.table().slots(), system.costs(), sources);
    for (const Mode mode : modes) {
      const SystemBound bounds = bound(quiet, mode, horizon);
      const std::uint32_t own = sources.front().partition;
      ASSERT_EQ(bounds.enforced[own].latency, bounds.queues[own].latency);
    }
  }
}

/// A source that breaks its model is granted what its monitor allows, if not more seldom.
TEST(EnforcedBound, CountsWhatTheMonitorGrantsAndNotTheArrivalModel) {
  Source often = counterexamples::every_10_ms(0, 2);
  often.top = Duration();
  often.arrival = Periodic(Duration(1000), {}, {});
  often.monitor = counterexamples::vector({5});
  Source seldom = counterexamples::every_10_ms(1, 1);
  seldom.top = Duration();
  const System system = counterexamples::system({10, 10}, {}, {often, seldom});
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    const SystemBound bounds = bound(system, mode);
    const Times times = {{10, 15}, {}};
    const Recorder recorder = recorded(system, {mode, false, {}}, times);
    ASSERT_EQ(lost(recorder.joined(), 10, 20), Duration(4));
    EXPECT_LT(bounds.promise.per_slot[1], Duration(4));
    EXPECT_GE(bounds.enforced_promise.per_slot[1], Duration(4));
  }
}

/// Denied IRQs of a source that breaks its model fill its queue, and accepted ones behind them are
/// interposed together: nothing is left of the time by which a job could be deferred.
TEST(EnforcedBound, HoldsBehindABacklogOfDeniedIrqs) {
  constexpr std::int64_t us = 1000;
  Source often = counterexamples::every_10_ms(0, 200 * us);
  Source seldom = counterexamples::every_10_ms(1, 10 * us);
  often.arrival = Periodic(Duration(1000 * us), {}, {});
  often.monitor = counterexamples::vector({1000 * us});
  often.top = Duration();
  seldom.top = Duration();
  seldom.arrival = Periodic(Duration(100'000 * us), {}, {});
  seldom.monitor = counterexamples::vector({100'000 * us});
  const System system =
      counterexamples::system({6000 * us, 2000 * us, 52'000 * us}, {}, {often, seldom});
  Times times(2);
  for (std::int64_t at = 0; at < 1'000'000 * us; at += 1000 * us) {
    times[0].push_back(at);
    if (at >= 100'000 * us && at < 600'000 * us) times[0].push_back(at + (500 * us));  // denied
  }
  for (std::int64_t cycle = 0; cycle < 16; cycle += 2) {
    times[1].push_back(((cycle * 60'000) + 6000) * us);
  }
  const Recorder recorder = recorded(system, {Mode::carry, false, {}}, times);
  const SystemBound bounds = bound(system, Mode::carry);
  ASSERT_GT(latencies(system, recorder)[1], bounds.queues[1].latency);
  EXPECT_LE(latencies(system, recorder)[1], bounds.enforced[1].latency);
  expect_promise(system, recorder, bounds.enforced_promise);
}

/// A server that can be busy from one own slot to the next may drop a job twice: then nothing is
/// known of its deferral. Slots of 10 ns; jobs of `bottom + 1` ns in all.
TEST(EnforcedBound, KnowsDeferralOnlyIfTheServerIsShorterThanTheGap) {
  for (const std::int64_t bottom : {7, 8, 9}) {
    Source first = counterexamples::every_10_ms(0, bottom);
    Source second = counterexamples::every_10_ms(1, 1);
    for (Source* each : {&first, &second}) {
      each->top = Duration();
      each->arrival = Periodic(Duration(1000), {}, {});
      each->monitor = counterexamples::vector({1000});
    }
    const System system = counterexamples::system({10, 10}, {}, {first, second});
    const QueueBound queue = bound(system, Mode::carry).enforced[1];
    EXPECT_EQ(queue.interposed, bottom < 9);
    EXPECT_EQ(queue.latency, Duration(bottom < 9 ? bottom + 1 : 20));
  }
  // one that arrived up to a row before may be interposed with another
  Source often = counterexamples::every_10_ms(0, 2);
  Source seldom = counterexamples::every_10_ms(1, 1);
  for (Source* each : {&often, &seldom}) {
    each->top = Duration();
    each->arrival = Periodic(Duration(1000), {}, {});
    each->monitor = counterexamples::vector({1000});
  }
  often.monitor = counterexamples::vector({11});
  const System system = counterexamples::system({10, 10}, {}, {often, seldom});
  // two of `often`: in 5 ns, as long as a row earlier, and the 5 ns that the server is busy
  EXPECT_EQ(bound(system, Mode::carry).enforced[1].latency, Duration(5));
}

TEST(LearningBound, HoldsForOthersBehindABacklogThatWasLearnedFrom) {
  const System system = backlog(true);
  const Times times = backlog_times();
  const Recorder recorder =
      recorded(system, {Mode::carry, false, {Instant(40), Instant::long_ago()}}, times);
  const SystemBound bounds = bound(system, Mode::carry);
  ASSERT_EQ(latencies(system, recorder)[1], Duration(9));
  ASSERT_EQ(lost(recorder.joined(), 50, 60), Duration(8));
  EXPECT_GE(bounds.queues[1].latency, Duration(9));
  EXPECT_GE(bounds.promise.per_slot[1], Duration(8));
  EXPECT_GE(bounds.queues[0].latency, latencies(system, recorder)[0]);
  // without learning all of them are interposed at once
  EXPECT_EQ(bound(backlog(false), Mode::carry).queues[1].latency, Duration(5));
}

TEST(LearningBound, HoldsWhileMonitorsLearn) {
  SystemGenerator generator(15);
  for (int round = 0; round < rounds(400); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const System system = drawn(generator, Costs::as_drawn, true);
    const Times times = generator.arrivals(system, 30);
    for (const Mode mode : modes) {
      const SystemBound bounds = bound(system, mode, horizon);
      const Recorder recorder =
          recorded(system, {mode, true, switched_on(generator, system, times)}, times);
      for (std::uint32_t partition = 0; partition < system.partitions(); ++partition) {
        ASSERT_NO_FATAL_FAILURE(expect_within(system, recorder, bounds.queues, partition));
      }
      ASSERT_NO_FATAL_FAILURE(expect_promise(system, recorder, bounds.promise));
    }
  }
}
