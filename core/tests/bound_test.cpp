// SPDX-License-Identifier: Apache-2.0
#include "latenz/bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/simulator.hpp"
#include "random_system.hpp"

using counterexamples::modes;
using latenz::bound;
using latenz::Costs;
using latenz::Duration;
using latenz::Mode;
using latenz::Periodic;
using latenz::QueueBound;
using latenz::Reason;
using latenz::Slot;
using latenz::Source;
using latenz::System;
using latenz::SystemBound;
using latenz::Verdict;

namespace {

constexpr Duration horizon(10'000'000);

/// Largest latency of each source in a simulation.
std::vector<Duration> simulated(const System& system, Mode mode,
                                const std::vector<std::vector<std::int64_t>>& times) {
  latenz::NoObserver nobody;
  latenz::Simulator simulator(system, mode, listed(times), INT64_MAX, false, nobody);
  EXPECT_TRUE(simulator.run(INT64_MAX));
  std::vector<Duration> latencies;
  for (const auto& figures : simulator.figures()) {
    latencies.push_back(figures.max);
  }
  return latencies;
}

/// A system's parts, to be changed and put together again.
struct Parts {
  std::vector<Slot> slots;
  Costs costs;
  std::vector<Source> sources;

  explicit Parts(const System& system)
      : slots(system.table().slots().begin(), system.table().slots().end()),
        costs(system.costs()),
        sources(system.sources().begin(), system.sources().end()) {}

  [[nodiscard]] System joined() const { return {slots, costs, sources}; }
};

void expect_none_lower(const SystemBound& after, const SystemBound& before) {
  ASSERT_EQ(after.queues.size(), before.queues.size());
  for (std::size_t i = 0; i < before.queues.size(); ++i) {
    ASSERT_GE(after.queues[i].latency, before.queues[i].latency) << "queue " << i;
  }
}

/// The parts as reported, against the functions they come from.
void expect_parts_add_up(const System& system, std::uint32_t partition, const QueueBound& queue) {
  const Duration finish = queue.offset + queue.latency;
  Duration sum = queue.blocked + queue.switches;
  for (std::size_t i = 0; i < queue.shares.size(); ++i) {
    const latenz::SourceShare& share = queue.shares[i];
    sum += share.top + share.bottom + share.interposing;
    ASSERT_EQ(share.top_handlers, system.sources()[i].arrival.eta(finish));
  }
  ASSERT_EQ(sum, finish);
  ASSERT_LE(finish, queue.offset + queue.busy_window);
  if (queue.interposed) {
    ASSERT_EQ(queue.blocked, Duration());
    ASSERT_EQ(queue.switches, system.costs().slot_switch * system.table().switches(finish));
  } else {
    ASSERT_EQ(queue.switches, Duration());
    ASSERT_EQ(queue.blocked, latenz::Supply(system.table(), partition).blocked(finish));
  }
}

bool has_sources(const System& system, std::uint32_t partition) {
  return std::ranges::any_of(system.sources(),
                             [&](const Source& each) { return each.partition == partition; });
}

/// Every source as often as it may come, for so many cycles.
std::vector<std::vector<std::int64_t>> periodic_times(const System& system, std::int64_t cycles) {
  std::vector<std::vector<std::int64_t>> times;
  for (const Source& source : system.sources()) {
    times.emplace_back();
    const std::int64_t period = source.arrival.rate_window().ns();
    for (std::int64_t at = 0; at < system.table().cycle().ns() * cycles; at += period) {
      times.back().push_back(at);
    }
  }
  return times;
}

/// The sources whose bound is called unbounded.
std::vector<std::size_t> proven_unbounded(const System& system, Mode mode) {
  const SystemBound result = bound(system, mode, horizon);
  std::vector<std::size_t> sources;
  for (std::size_t i = 0; i < system.sources().size(); ++i) {
    if (result.queues[system.sources()[i].partition].verdict == Verdict::unbounded) {
      sources.push_back(i);
    }
  }
  return sources;
}

System one_source(Duration bottom, Duration period) {
  Source source = counterexamples::every_10_ms(0, bottom.ns());
  source.top = Duration();
  source.arrival = Periodic(period, {}, {});
  return counterexamples::system({1'000'000, 1'000'000}, {}, {source});
}

}  // namespace

TEST(Bound, OfTheCounterexamplesIsThatOfAnIndependentModel) {
  for (const Counterexample& each : counterexamples::all()) {
    for (const Mode mode : modes) {
      const SystemBound result = bound(each.system, mode);
      for (std::size_t i = 0; i < each.expected.size(); ++i) {
        const QueueBound& queue = result.queues[each.system.sources()[i].partition];
        EXPECT_EQ(queue.verdict, Verdict::bounded);
        EXPECT_EQ(queue.latency.ns(), each.expected[i].bound[static_cast<std::size_t>(mode)])
            << each.name << ", source " << i;
      }
    }
  }
}

TEST(Bound, IsNeverExceededAndOftenReachedByRandomSystems) {
  SystemGenerator generator(1);
  int bounded = 0;
  int reached = 0;
  for (int round = 0; round < 4000; ++round) {
    const System system = generator.system();
    const auto times = generator.arrivals(system, 30);
    for (const Mode mode : modes) {
      const SystemBound result = bound(system, mode, horizon);
      const auto latencies = simulated(system, mode, times);
      for (std::size_t i = 0; i < latencies.size(); ++i) {
        const QueueBound& queue = result.queues[system.sources()[i].partition];
        ASSERT_LE(latencies[i], queue.latency)
            << "round " << round << ", mode " << static_cast<int>(mode) << ", source " << i;
        bounded += queue.verdict == Verdict::bounded ? 1 : 0;
        reached += latencies[i] == queue.latency ? 1 : 0;
      }
    }
  }
  EXPECT_GT(bounded, 10'000);
  EXPECT_GT(reached, bounded / 100);
}

TEST(Bound, PartsAddUpToOffsetAndLatency) {
  SystemGenerator generator(2);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    for (const Mode mode : modes) {
      const SystemBound result = bound(system, mode, horizon);
      for (std::uint32_t partition = 0; partition < result.queues.size(); ++partition) {
        const QueueBound& queue = result.queues[partition];
        if (queue.verdict == Verdict::bounded && has_sources(system, partition)) {
          expect_parts_add_up(system, partition, queue);
        }
      }
    }
  }
}

TEST(Bound, IsNotLoweredByAnyCost) {
  SystemGenerator generator(3);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    for (int change = 0; change < 5; ++change) {
      Parts parts(system);
      const Duration more(generator.scaled(1, 3));
      Source& source =
          parts.sources[static_cast<std::size_t>(generator.up_to(1000)) % parts.sources.size()];
      Duration* const costs[] = {&source.top, &source.bottom, &parts.costs.monitor,
                                 &parts.costs.schedule, &parts.costs.context_switch};
      *costs[change] += more;
      for (const Mode mode : modes) {
        expect_none_lower(bound(parts.joined(), mode, horizon), bound(system, mode, horizon));
      }
    }
  }
}

TEST(Bound, IsNotLoweredByDenserArrivals) {
  SystemGenerator generator(4);
  for (int round = 0; round < 1000; ++round) {
    Parts parts(generator.system());
    for (Source& source : parts.sources) {
      source.arrival = Periodic(Duration(2000), Duration(500), Duration(100));
    }
    const System system = parts.joined();
    const Periodic denser[] = {Periodic(Duration(1700), Duration(500), Duration(100)),
                               Periodic(Duration(2000), Duration(900), Duration(100)),
                               Periodic(Duration(2000), Duration(500), Duration(50))};
    for (const Periodic& model : denser) {
      parts.sources[static_cast<std::size_t>(round) % parts.sources.size()].arrival = model;
      for (const Mode mode : modes) {
        expect_none_lower(bound(parts.joined(), mode, horizon), bound(system, mode, horizon));
      }
    }
  }
}

TEST(Bound, IsNotLoweredByLongerForeignSlotsWhereQueuesWaitForThem) {
  SystemGenerator generator(5);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    Parts parts(system);
    Slot& slot = parts.slots[static_cast<std::size_t>(round) % parts.slots.size()];
    slot.length += Duration(generator.scaled(1, 5));
    for (const Mode mode : {Mode::plain, Mode::paper}) {
      const SystemBound before = bound(system, mode, horizon);
      const SystemBound after = bound(parts.joined(), mode, horizon);
      for (std::size_t i = 0; i < before.queues.size(); ++i) {
        if (i != slot.partition) {
          ASSERT_GE(after.queues[i].latency, before.queues[i].latency);
        }
      }
    }
  }
}

TEST(Bound, ScalesExactlyWithTheUnitOfTime) {
  SystemGenerator generator(6);
  constexpr std::int64_t unit = 1000;
  const auto longer = [](Duration& time) { time = time * unit; };
  for (int round = 0; round < 500; ++round) {
    Parts parts(generator.system());
    Parts scaled = parts;
    for (std::size_t i = 0; i < parts.sources.size(); ++i) {
      const Duration period(generator.scaled(20, 200));
      const Duration jitter(generator.scaled(0, 100));
      parts.sources[i].arrival = Periodic(period, jitter, {});
      scaled.sources[i].arrival = Periodic(period * unit, jitter * unit, {});
      longer(scaled.sources[i].top);
      longer(scaled.sources[i].bottom);
      if (const auto& monitor = parts.sources[i].monitor) {
        const auto closed = monitor->closed();
        Distances distances(closed.begin(), closed.end());
        std::ranges::for_each(distances, longer);
        scaled.sources[i].monitor = latenz::DistanceVector(distances);
      }
    }
    for (Slot& slot : scaled.slots) {
      longer(slot.length);
    }
    for (Duration* cost : {&scaled.costs.slot_switch, &scaled.costs.monitor, &scaled.costs.schedule,
                           &scaled.costs.context_switch}) {
      longer(*cost);
    }
    for (const Mode mode : modes) {
      const SystemBound one = bound(parts.joined(), mode, horizon);
      const SystemBound many = bound(scaled.joined(), mode, horizon * unit);
      for (std::size_t i = 0; i < one.queues.size(); ++i) {
        ASSERT_EQ(one.queues[i].verdict, many.queues[i].verdict);
        ASSERT_EQ(one.queues[i].latency * unit, many.queues[i].latency);
        ASSERT_EQ(one.queues[i].offset * unit, many.queues[i].offset);
      }
      ASSERT_EQ(one.promise.per_cycle * unit, many.promise.per_cycle);
    }
  }
}

TEST(Bound, InModePlainIsThatWithoutMonitorsInAnyMode) {
  SystemGenerator generator(7);
  for (int round = 0; round < 500; ++round) {
    const System system = generator.system();
    Parts parts(system);
    for (Source& source : parts.sources) {
      source.monitor.reset();
    }
    const SystemBound plain = bound(system, Mode::plain, horizon);
    for (const Mode mode : modes) {
      const SystemBound without = bound(parts.joined(), mode, horizon);
      for (const Source& source : parts.sources) {
        const QueueBound& expected = plain.queues[source.partition];
        ASSERT_EQ(without.queues[source.partition].latency, expected.latency);
        ASSERT_EQ(without.queues[source.partition].busy_window, expected.busy_window);
      }
    }
  }
}

TEST(Bound, RecognisesOverloadByItselfAndFullLoadNot) {
  // 1 of 2 ms is the partition's
  const QueueBound full =
      bound(one_source(Duration(1'000'000), Duration(2'000'000)), Mode::plain).queues[0];
  EXPECT_EQ(full.verdict, Verdict::bounded);
  EXPECT_EQ(full.latency, Duration(2'000'000));
  const QueueBound over =
      bound(one_source(Duration(1'000'001), Duration(2'000'000)), Mode::plain).queues[0];
  EXPECT_EQ(over.verdict, Verdict::unbounded);
  EXPECT_EQ(over.reason, Reason::overload);
  EXPECT_TRUE(over.latency.is_unbounded());
}

/// Both interposed in slots of the other, which the horizon cuts off: no overload.
TEST(Bound, OneFormPastTheHorizonIsNoOverloadInAnother) {
  constexpr std::int64_t ms = 1'000'000;
  const auto source = [](std::uint32_t partition, std::int64_t bottom, std::int64_t period) {
    Source each = counterexamples::every_10_ms(partition, bottom);
    each.top = Duration();
    each.arrival = Periodic(Duration(period), {}, {});
    each.monitor = counterexamples::vector({period});
    return each;
  };
  const System system = counterexamples::system(
      {ms, 9 * ms}, {}, {source(0, 600 * ms, 1000 * ms), source(1, 500 * ms, 10'000 * ms)});
  const QueueBound queue = bound(system, Mode::carry).queues[0];
  EXPECT_EQ(queue.verdict, Verdict::past_horizon);
  EXPECT_EQ(queue.reason, Reason::horizon);
  EXPECT_TRUE(queue.interposed);
  const QueueBound longer = bound(system, Mode::carry, Duration(100'000 * ms)).queues[0];
  EXPECT_EQ(longer.verdict, Verdict::bounded);
  EXPECT_EQ(longer.latency, Duration(1100 * ms));
}

/// In mode paper its IRQs are interposed, but the analysis counts on its own slots alone.
TEST(Bound, WorkCountedTwiceIsNoProofOfOverload) {
  constexpr std::int64_t ms = 1'000'000;
  Source source = counterexamples::every_10_ms(0, 2 * ms);
  source.top = Duration();
  source.arrival = Periodic(Duration(7 * ms), {}, {});
  source.monitor = counterexamples::vector({7 * ms});
  const System system = counterexamples::system({ms, 9 * ms}, {}, {source});
  const QueueBound queue = bound(system, Mode::paper).queues[0];
  EXPECT_EQ(queue.verdict, Verdict::past_horizon);
  EXPECT_EQ(queue.reason, Reason::overcounted);
  EXPECT_EQ(bound(system, Mode::plain).queues[0].verdict, Verdict::unbounded);
}

/// What is called unbounded has latencies that grow with the time that is simulated.
TEST(Bound, LatenciesGrowWithoutEndWhereThatWasProven) {
  SystemGenerator generator(8);
  int proven = 0;
  int grew = 0;
  for (int round = 0; round < 1500; ++round) {
    Parts parts(generator.system());
    for (Source& source : parts.sources) {
      source.arrival = Periodic(Duration(generator.scaled(5, 40)), {}, {});
    }
    const System system = parts.joined();
    const auto few = periodic_times(system, 400);
    const auto many = periodic_times(system, 800);
    for (const Mode mode : modes) {
      const std::vector<Duration> soon = simulated(system, mode, few);
      const std::vector<Duration> late = simulated(system, mode, many);
      for (const std::size_t i : proven_unbounded(system, mode)) {
        ++proven;
        grew += late[i] > soon[i] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(proven, 500);
  EXPECT_GT(grew, proven * 99 / 100) << "but for the slowest";
}

TEST(Bound, SaysThatTheHorizonWasTooShort) {
  const QueueBound queue =
      bound(one_source(Duration(900'000), Duration(2'000'000)), Mode::plain, Duration(1'000'000))
          .queues[0];
  EXPECT_EQ(queue.verdict, Verdict::past_horizon);
  EXPECT_EQ(queue.reason, Reason::horizon);
}

TEST(Bound, NamesTheSourceThatMayComeAtAnyRate) {
  Parts parts(one_source(Duration(1000), Duration(2'000'000)));
  Source unknown = counterexamples::every_10_ms(1, 1000);
  unknown.arrival = latenz::Unlimited();
  parts.sources.push_back(unknown);
  const QueueBound queue = bound(parts.joined(), Mode::plain).queues[0];
  EXPECT_EQ(queue.verdict, Verdict::unbounded);
  EXPECT_EQ(queue.reason, Reason::unlimited_arrivals);
  EXPECT_EQ(queue.culprit, 1U);
  // a top handler that costs nothing does not delay others
  parts.sources[1].top = Duration();
  EXPECT_EQ(bound(parts.joined(), Mode::plain).queues[0].verdict, Verdict::bounded);
}

TEST(Bound, TimesNearTheEndOf64BitsGiveNoWrongBound) {
  Source source = counterexamples::every_10_ms(0, INT64_MAX / 4);
  source.arrival = Periodic(Duration(INT64_MAX / 2), Duration(INT64_MAX - 1), {});
  const System system =
      counterexamples::system({INT64_MAX / 4, INT64_MAX / 4}, {}, {source, source});
  for (const Mode mode : modes) {
    EXPECT_TRUE(bound(system, mode, Duration(INT64_MAX - 1)).queues[0].latency.is_unbounded());
  }
}
