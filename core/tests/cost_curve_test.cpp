// SPDX-License-Identifier: Apache-2.0
// Cost curves of top handlers: the curve itself, and bounds and simulations of systems that have
// them.
#include "latenz/cost_curve.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"
#include "random_curves.hpp"
#include "random_system.hpp"
#include "recorder.hpp"

using counterexamples::modes;
using latenz::bound;
using latenz::CostCurve;
using latenz::CostMeter;
using latenz::Count;
using latenz::Duration;
using latenz::Mode;
using latenz::Source;
using latenz::System;
using latenz::SystemBound;
using latenz::Verdict;

namespace {

constexpr Duration horizon(10'000'000);

using Sums = std::vector<Duration>;

/// gamma(q) for q = 0 .. most by the definition: the least sum over all ways to make a row of q
/// executions of rows that are given.
Sums sums_by_definition(const Sums& given, std::size_t most) {
  Sums sums(most + 1, Duration::unbounded());
  sums[0] = Duration();
  for (std::size_t q = 1; q <= most; ++q) {
    for (std::size_t row = 1; row <= std::min(q, given.size()); ++row) {
      sums[q] = std::min(sums[q], sums[q - row] + given[row - 1]);
    }
  }
  return sums;
}

void expect_definition(const Sums& given, std::size_t most) {
  const CostCurve curve(given);
  const Sums expected = sums_by_definition(given, most);
  for (std::size_t q = 0; q <= most; ++q) {
    ASSERT_EQ(curve.sum(static_cast<Count>(q)), expected[q]) << "q = " << q;
  }
  const auto row = static_cast<std::size_t>(curve.rate_events());
  ASSERT_EQ(curve.rate_cost(), expected[row]);
  for (std::size_t q = row; q <= most; ++q) {
    ASSERT_GE(expected[q].ns() * curve.rate_events(),
              curve.rate_cost().ns() * static_cast<Count>(q))
        << "no row takes less an execution";
  }
}

Recorder recorded(const System& system, Mode mode,
                  const std::vector<std::vector<std::int64_t>>& times) {
  Recorder recorder;
  latenz::Simulator simulator(system, mode, listed(times), INT64_MAX, false, recorder);
  EXPECT_TRUE(simulator.run(INT64_MAX));
  return recorder;
}

/// What the top handlers of a source took together, the first 0, 1, 2, ... of them: by what the
/// processor did. One that took no time has no segment.
Sums top_handlers(const Recorder& recorder, std::uint32_t source) {
  std::vector<std::int64_t> starts;
  for (const latenz::IrqRecord& irq : recorder.irqs) {
    if (irq.source == source) {
      starts.push_back(irq.top_start.ns());
    }
  }
  std::ranges::sort(starts);
  Sums until = {Duration()};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    Duration cost;
    for (const Segment& each : recorder.schedule) {
      const bool own = each.activity == latenz::Activity::top_handler && each.source == source;
      if (own && each.start == starts[i] && (i + 1 == starts.size() || starts[i + 1] > starts[i])) {
        cost = Duration(each.end - each.start);
      }
    }
    until.push_back(until.back() + cost);
  }
  return until;
}

void expect_equal(const SystemBound& found, const SystemBound& expected) {
  ASSERT_EQ(found.queues.size(), expected.queues.size());
  for (std::size_t i = 0; i < found.queues.size(); ++i) {
    const auto& queue = found.queues[i];
    ASSERT_EQ(queue.verdict, expected.queues[i].verdict);
    ASSERT_EQ(queue.reason, expected.queues[i].reason);
    ASSERT_EQ(queue.latency, expected.queues[i].latency);
    ASSERT_EQ(queue.busy_window, expected.queues[i].busy_window);
    ASSERT_EQ(queue.offset, expected.queues[i].offset);
    ASSERT_EQ(queue.blocked, expected.queues[i].blocked);
    for (std::size_t j = 0; j < queue.shares.size(); ++j) {
      ASSERT_EQ(queue.shares[j].top, expected.queues[i].shares[j].top);
    }
    ASSERT_EQ(found.enforced[i].latency, expected.enforced[i].latency);
  }
  ASSERT_EQ(found.promise.per_cycle, expected.promise.per_cycle);
  ASSERT_EQ(found.promise.per_slot, expected.promise.per_slot);
  ASSERT_EQ(found.enforced_promise.per_cycle, expected.enforced_promise.per_cycle);
  ASSERT_EQ(found.enforced_promise.per_slot, expected.enforced_promise.per_slot);
}

}  // namespace

TEST(CostCurve, IsTheSubAdditiveClosureOfEverySmallVector) {
  for (std::size_t length = 1; length <= 4; ++length) {
    for (const Distances& sums : every_vector(length, 6)) {
      expect_definition(sums, 60);
    }
  }
}

TEST(CostCurve, IsTheSubAdditiveClosureOfLongRandomVectors) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    expect_definition(random_vector(random, 1 + (random() % 64), 1 + (random() % 5000)), 2000);
  }
}

TEST(CostCurve, KeepsItsLaws) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const CostCurve curve(
        random_sums(random, Duration(1 + static_cast<std::int64_t>(random() % 900))));
    for (int j = 0; j < 50; ++j) {
      const auto a = static_cast<Count>(random() % 5000);
      const auto b = static_cast<Count>(random() % 5000);
      ASSERT_LE(curve.sum(a), curve.sum(a + 1));
      ASSERT_LE(curve.sum(a + b), curve.sum(a) + curve.sum(b));
    }
  }
}

TEST(CostCurve, OfEndlessExecutionsEndsAsTimesDo) {
  EXPECT_EQ(CostCurve(Sums{Duration(1)}).sum(latenz::endless), Duration::unbounded());
  EXPECT_EQ(CostCurve(Sums{Duration(5), Duration(6)}).sum(latenz::endless), Duration::unbounded());
  EXPECT_EQ(CostCurve(Sums{Duration(), Duration(7)}).sum(latenz::endless), Duration());
  const Sums centuries = {Duration(INT64_MAX / 2), Duration(INT64_MAX - 1)};
  EXPECT_EQ(CostCurve(centuries).sum(3), Duration::unbounded());
}

/// No sequence that keeps a curve takes more, up to any place; and every row of it keeps the curve.
TEST(CostMeter, TakesTheCurveFromTheFirstExecutionOnAndNeverMore) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const CostCurve curve(
        random_sums(random, Duration(1 + static_cast<std::int64_t>(random() % 50))));
    CostMeter meter(curve.closed());
    Sums until = {Duration()};
    for (Count q = 1; q <= 80; ++q) {
      const Duration cost = meter.next();
      ASSERT_GE(cost, Duration());
      until.push_back(until.back() + cost);
      ASSERT_EQ(until.back(), curve.sum(q));
      for (Count row = 1; row <= q; ++row) {
        ASSERT_LE(until.back() - until[static_cast<std::size_t>(q - row)], curve.sum(row));
      }
    }
  }
}

/// One slot, nothing to switch: work 100, and interrupts each 30 that take 20, then 5 each time.
TEST(CurveBound, IsAFixedPointThatPaperAndPencilFind) {
  Source work = counterexamples::every_10_ms(0, 100);
  work.top = Duration();
  Source busy = counterexamples::every_10_ms(0, 1);
  busy.arrival = latenz::Periodic(Duration(30), {}, {});
  busy.top = Duration(20);
  busy.top_sums = CostCurve(Sums{Duration(20), Duration(25), Duration(30)});
  const System system = counterexamples::system({1'000'000}, {}, {work, busy});
  // gamma(q) = 20, 25, 30, 50, 55, 60, 80, ...: all first at once, then offset 0 is the worst.
  // F = 101 + gamma(ceil(F / 30)): 101 -> 101 + 50 = 151 -> 101 + 60 = 161 -> 161.
  EXPECT_EQ(bound(system, Mode::plain).queues[0].latency, Duration(161));
  // without the curve 101 + 20 ceil(F / 30): 101 -> 181 -> 241 -> 281 -> 301 -> 321 -> 321
  EXPECT_EQ(bound(without_curves(system), Mode::plain).queues[0].latency, Duration(321));
}

TEST(CurveBound, WithTheFlatCurveIsTheOneWithoutAny) {
  SystemGenerator generator(4);
  for (int round = 0; round < 1000; ++round) {
    const System system = generator.system();
    std::vector<Source> sources(system.sources().begin(), system.sources().end());
    for (Source& source : sources) {
      Sums sums;
      for (Count q = 1; q <= 1 + generator.up_to(3); ++q) {
        sums.push_back(source.top * q);
      }
      source.top_sums = CostCurve(sums);
    }
    const System flat(system.table().slots(), system.costs(), sources);
    for (const Mode mode : modes) {
      expect_equal(bound(flat, mode, horizon), bound(system, mode, horizon));
    }
  }
}

TEST(CurveBound, IsNeverExceededAndOftenReachedByRandomSystems) {
  SystemGenerator generator(5);
  std::mt19937_64 random(6);
  int bounded = 0;
  int reached = 0;
  int lower = 0;
  for (int round = 0; round < 2500; ++round) {
    const System system = with_curves(random, generator.system());
    const auto times = generator.arrivals(system, 25);
    for (const Mode mode : modes) {
      const SystemBound result = bound(system, mode, horizon);
      const SystemBound flat = bound(without_curves(system), mode, horizon);
      const Recorder recorder = recorded(system, mode, times);
      for (const latenz::IrqRecord& irq : recorder.irqs) {
        const auto& queue = result.queues[system.sources()[irq.source].partition];
        ASSERT_LE(irq.end - irq.arrival, queue.latency)
            << "round " << round << ", mode " << static_cast<int>(mode) << ", source "
            << irq.source;
        reached += irq.end - irq.arrival == queue.latency ? 1 : 0;
      }
      for (std::size_t i = 0; i < result.queues.size(); ++i) {
        ASSERT_LE(result.queues[i].latency, flat.queues[i].latency);
        lower += result.queues[i].latency < flat.queues[i].latency ? 1 : 0;
        bounded += result.queues[i].verdict == Verdict::bounded ? 1 : 0;
      }
    }
  }
  EXPECT_GT(bounded, 5000);
  EXPECT_GT(lower, 1000);
  EXPECT_GT(reached, 100);
}

/// By what the processor did, not by what the meter says: q consecutive top handlers of a source
/// take at most gamma(q), and what its monitor costs besides.
TEST(CurveSimulation, HasTopHandlersThatKeepTheirCurves) {
  SystemGenerator generator(7);
  std::mt19937_64 random(8);
  int shorter = 0;
  for (int round = 0; round < 500; ++round) {
    const System drawn = with_curves(random, generator.system());
    latenz::Costs costs = drawn.costs();
    costs.monitor = Duration();
    const System system(drawn.table().slots(), costs,
                        {drawn.sources().begin(), drawn.sources().end()});
    const Recorder recorder = recorded(system, Mode::carry, generator.arrivals(system, 15));
    for (std::uint32_t index = 0; index < system.sources().size(); ++index) {
      const Source& source = system.sources()[index];
      const Sums until = top_handlers(recorder, index);
      for (std::size_t q = 1; source.top_sums && q < until.size(); ++q) {
        shorter += until[q] - until[q - 1] < source.top ? 1 : 0;
        for (std::size_t first = 0; first + q < until.size(); ++first) {
          ASSERT_LE(until[first + q] - until[first], source.top_sums->sum(static_cast<Count>(q)));
        }
      }
    }
  }
  EXPECT_GT(shorter, 1000);
}
