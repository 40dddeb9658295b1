// SPDX-License-Identifier: Apache-2.0
// LATENZ_ADVERSARY_SYSTEMS and LATENZ_ADVERSARY_SIMULATIONS ask for a larger search than the usual
// one: systems of each batch, simulations for each source of a system.
#include "latenz/adversary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "counterexamples.hpp"
#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"
#include "measured_systems.hpp"
#include "random_curves.hpp"
#include "random_system.hpp"

using latenz::Adversary;
using latenz::Attack;
using latenz::Count;
using latenz::Duration;
using latenz::Instant;
using latenz::Mode;
using latenz::Source;
using latenz::System;
using latenz::SystemBound;
using latenz::Verdict;

namespace {

constexpr Mode every_mode[] = {Mode::plain, Mode::paper, Mode::carry};

using Times = std::vector<std::int64_t>;

/// Any window of times, by brute force, holds no more events than the model says.
void expect_legal(const latenz::EventModel& model, const Times& times) {
  for (std::size_t first = 0; first < times.size(); ++first) {
    for (std::size_t last = first; last < times.size(); ++last) {
      ASSERT_LE(times[first], times[last]);
      const Duration window(times[last] - times[first] + 1);
      ASSERT_LE(static_cast<Count>(last - first + 1), model.eta(window))
          << "events " << first << " to " << last;
    }
  }
}

/// Whether some arrival comes earlier than the source's model allows.
bool breaks(const Source& source, const Times& times) {
  auto limiter = source.arrival.limiter();
  for (const std::int64_t time : times) {
    if (!limiter.permits(Instant(time))) {
      return true;
    }
    limiter.record(Instant(time));
  }
  return false;
}

std::vector<latenz::SourceFigures> replay(const System& system, Mode mode,
                                          const std::vector<Times>& times) {
  latenz::NoObserver observer;
  latenz::Simulator simulator(system, mode, listed(times), latenz::endless, false, observer);
  while (!simulator.run(std::numeric_limits<std::int64_t>::max())) {
  }
  return {simulator.figures().begin(), simulator.figures().end()};
}

std::size_t arrivals_of(const Attack& attack) {
  std::size_t arrivals = 0;
  for (const Times& times : attack.arrivals) {
    arrivals += times.size();
  }
  return arrivals;
}

std::vector<Attack> search_all(const System& system, Mode mode, const SystemBound& bounds,
                               std::uint64_t seed, int simulations) {
  Adversary adversary(system, mode, bounds.queues, seed);
  for (std::size_t source = 0; source < system.sources().size(); ++source) {
    adversary.search(source, simulations);
  }
  return {adversary.attacks().begin(), adversary.attacks().end()};
}

int setting(const char* name, int usual) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text == nullptr ? usual : std::stoi(text);
}

/// What was found in a batch of systems: of each bound the part that was reached.
struct Found {
  std::vector<double> ratios[3];  ///< by mode

  [[nodiscard]] double median(Mode mode) {
    std::vector<double>& sorted = ratios[static_cast<std::size_t>(mode)];
    std::ranges::sort(sorted);
    return sorted.empty() ? 0.0 : sorted[sorted.size() / 2];
  }
};

std::ostream& operator<<(std::ostream& out, Found& found) {
  const char* names[] = {"plain", "paper", "carry"};
  for (const Mode mode : every_mode) {
    const double median = found.median(mode);
    const std::vector<double>& ratios = found.ratios[static_cast<std::size_t>(mode)];
    out << names[static_cast<std::size_t>(mode)] << ": " << ratios.size() << " sources, reached "
        << std::fixed << std::setprecision(3) << median << " of the bound (median), all of it for "
        << std::ranges::count(ratios, 1.0) << "\n";
  }
  return out;
}

/// Searches all sources in all modes; adds to what was found.
void search_system(const System& system, std::uint64_t seed, int simulations, Found& found) {
  for (const Mode mode : every_mode) {
    const SystemBound bounds = latenz::bound(system, mode);
    const std::vector<Attack> attacks = search_all(system, mode, bounds, seed, simulations);
    for (std::size_t i = 0; i < attacks.size(); ++i) {
      const latenz::QueueBound& bound = bounds.queues[system.sources()[i].partition];
      if (bound.verdict != Verdict::bounded) {
        continue;
      }
      EXPECT_LE(attacks[i].latency, bound.latency)
          << "source " << i << ", mode " << static_cast<int>(mode) << ", seed " << seed;
      found.ratios[static_cast<std::size_t>(mode)].push_back(
          static_cast<double>(attacks[i].latency.ns()) / static_cast<double>(bound.latency.ns()));
    }
  }
}

template <typename Next>
Found search_systems(Next next) {
  const int systems = setting("LATENZ_ADVERSARY_SYSTEMS", 1000);
  const int simulations = setting("LATENZ_ADVERSARY_SIMULATIONS", 150);
  Found found;
  for (int i = 0; i < systems && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("system " + std::to_string(i));
    search_system(next(), static_cast<std::uint64_t>(i), simulations, found);
  }
  std::cout << found;
  return found;
}

TEST(Adversary, PlansExpandToLegalStreams) {
  latenz::Random random(1);
  SystemGenerator generator(2);
  MeasuredSystems measured(3);
  Times times;
  for (int i = 0; i < 2000; ++i) {
    const System system = i % 2 == 0 ? generator.system() : measured.next(i % 4 == 1);
    const std::int64_t cycle = system.table().cycle().ns();
    for (const Source& source : system.sources()) {
      const latenz::DistanceTable table(source.arrival, Duration(cycle * 10), 30);
      latenz::Plan plan;
      std::int64_t from = 0;
      for (std::int64_t bursts = random.up_to(4); bursts >= 0; --bursts) {
        plan.push_back({.from = Instant(from), .events = 1 + random.up_to(3)});
        from += random.up_to(cycle * 2);
      }
      plan.back().events = latenz::endless;
      latenz::expand(plan, table, Instant(cycle * 10), times);
      ASSERT_FALSE(times.empty());
      expect_legal(source.arrival, times);
    }
  }
}

TEST(Adversary, OneBurstComesAsDenselyAsTheModelAllows) {
  MeasuredSystems measured(4);
  Times times;
  for (int i = 0; i < 200; ++i) {
    const System system = measured.next(false);
    const Source& source = system.sources().front();
    const Duration window = system.table().cycle() * 5;
    const latenz::DistanceTable table(source.arrival, window, 1000);
    latenz::expand({{.from = Instant(7)}}, table, Instant(7) + window, times);
    ASSERT_EQ(static_cast<Count>(times.size()), source.arrival.eta(window + Duration(1)));
  }
}

TEST(Adversary, WhatItFindsIsLegalAndReplays) {
  SystemGenerator generator(5);
  MeasuredSystems measured(6);
  for (int i = 0; i < 300; ++i) {
    const System system = i % 2 == 0 ? generator.system() : measured.next(i % 4 == 1);
    for (const Mode mode : every_mode) {
      const SystemBound bounds = latenz::bound(system, mode);
      const std::vector<Attack> attacks = search_all(system, mode, bounds, 7, 150);
      for (std::size_t target = 0; target < attacks.size(); ++target) {
        if (attacks[target].arrivals.empty()) {
          continue;
        }
        for (std::size_t source = 0; source < system.sources().size(); ++source) {
          expect_legal(system.sources()[source].arrival, attacks[target].arrivals[source]);
        }
        ASSERT_EQ(replay(system, mode, attacks[target].arrivals)[target].max,
                  attacks[target].latency);
      }
    }
  }
}

TEST(Adversary, TheSameSeedFindsTheSame) {
  MeasuredSystems measured(8);
  for (int i = 0; i < 20; ++i) {
    const System system = measured.next(false);
    const SystemBound bounds = latenz::bound(system, Mode::carry);
    const std::vector<Attack> once = search_all(system, Mode::carry, bounds, 9, 200);
    const std::vector<Attack> again = search_all(system, Mode::carry, bounds, 9, 200);
    for (std::size_t source = 0; source < once.size(); ++source) {
      ASSERT_EQ(once[source].latency, again[source].latency);
      ASSERT_EQ(once[source].arrivals, again[source].arrivals);
    }
  }
}

TEST(Adversary, SimplerArrivalsLeadToTheSameLatency) {
  MeasuredSystems measured(10);
  std::size_t before = 0;
  std::size_t after = 0;
  for (int i = 0; i < 100; ++i) {
    const System system = measured.next(i % 2 == 0);
    const SystemBound bounds = latenz::bound(system, Mode::carry);
    Adversary adversary(system, Mode::carry, bounds.queues, 1);
    for (std::size_t target = 0; target < system.sources().size(); ++target) {
      adversary.search(target, 150);
      const Attack found = adversary.attacks()[target];
      adversary.simplify(target, 1000);
      const Attack& simple = adversary.attacks()[target];
      before += arrivals_of(found);
      after += arrivals_of(simple);
      if (found.arrivals.empty()) {
        continue;
      }
      ASSERT_GE(simple.latency, found.latency);
      ASSERT_EQ(replay(system, Mode::carry, simple.arrivals)[target].max, simple.latency);
      for (std::size_t source = 0; source < system.sources().size(); ++source) {
        expect_legal(system.sources()[source].arrival, simple.arrivals[source]);
      }
    }
  }
  EXPECT_LT(after, before * 3 / 4);
}

/// Its backlog would take thousands of years; the search does not wait for it.
TEST(Adversary, AnOverloadedPartitionDoesNotHoldUpTheSearchOfOthers) {
  const std::vector<latenz::Slot> slots = {{0, Duration(1000)}, {1, Duration(1000)}};
  const latenz::Periodic often(Duration(10'000), {}, {});
  const System system(slots, {},
                      {{.partition = 0,
                        .top = Duration(1),
                        .bottom = Duration(100),
                        .arrival = often,
                        .monitor = {}},
                       {.partition = 1,
                        .top = Duration(1),
                        .bottom = Duration(1'000'000'000'000'000'000),
                        .arrival = often,
                        .monitor = {}}});
  const SystemBound bounds = latenz::bound(system, Mode::plain);
  const std::vector<Attack> attacks = search_all(system, Mode::plain, bounds, 1, 1000);
  EXPECT_GT(attacks[0].latency, Duration(1100));
  EXPECT_TRUE(attacks[1].arrivals.empty());
}

TEST(Adversary, WhatWasFoundStaysWhenASearchIsEnded) {
  const System system = MeasuredSystems(14).next(false);
  const SystemBound bounds = latenz::bound(system, Mode::carry);
  int left = 30;
  Adversary adversary(system, Mode::carry, bounds.queues, 1, [&left] {
    if (left-- == 0) {
      throw std::runtime_error("enough");
    }
  });
  EXPECT_THROW(adversary.search(0, 1000), std::runtime_error);
  EXPECT_GT(adversary.attacks()[0].latency, Duration());
}

TEST(Adversary, ASearchThatDidNotBeginIsOver) {
  const System system = MeasuredSystems(14).next(false);
  const SystemBound bounds = latenz::bound(system, Mode::carry);
  bool refuses = false;
  Adversary adversary(system, Mode::carry, bounds.queues, 1, [&refuses] {
    if (refuses) {
      throw std::runtime_error("before the first simulation");
    }
  });
  EXPECT_TRUE(adversary.go_on(1));
  adversary.search(0, -1);  // as none
  EXPECT_EQ(adversary.left(), 0);
  adversary.begin(0, 1000);
  refuses = true;
  EXPECT_THROW(adversary.begin(0, 1000), std::runtime_error);
  refuses = false;
  EXPECT_TRUE(adversary.go_on(1));  // what another one had found is not a pattern of this one
}

TEST(Adversary, ASourceWithoutABoundIsLeftAlone) {
  const std::vector<latenz::Slot> slots = {{0, Duration(10)}, {1, Duration(10)}};
  const System system(slots, {},
                      {{.partition = 0,
                        .top = Duration(1),
                        .bottom = Duration(1),
                        .arrival = latenz::Unlimited(),
                        .monitor = {}}});
  const SystemBound bounds = latenz::bound(system, Mode::plain);
  const std::vector<Attack> attacks = search_all(system, Mode::plain, bounds, 1, 100);
  EXPECT_TRUE(attacks[0].arrivals.empty());
}

/// Every published equation that is too low is found to be, and what is known to be reachable is
/// reached.
TEST(Adversary, ReachesWhatIsKnownToBeReachable) {
  for (const Counterexample& example : counterexamples::all()) {
    for (const Mode mode : every_mode) {
      const auto index = static_cast<std::size_t>(mode);
      const SystemBound bounds = latenz::bound(example.system, mode);
      const std::vector<Attack> attacks = search_all(example.system, mode, bounds, 1, 2000);
      for (std::size_t i = 0; i < attacks.size(); ++i) {
        EXPECT_GE(attacks[i].latency.ns(), example.expected[i].simulated[index])
            << example.name << ", source " << i << ", mode " << index;
        EXPECT_LE(attacks[i].latency.ns(), example.expected[i].bound[index])
            << example.name << ", source " << i << ", mode " << index;
      }
    }
  }
}

/// Every third monitor learns.
System with_learning(SystemGenerator& generator, const System& system) {
  std::vector<Source> sources(system.sources().begin(), system.sources().end());
  for (Source& source : sources) {
    source.learns = source.monitor && generator.one_in(3);
  }
  return {system.table().slots(), system.costs(), sources};
}

/// Sources of other partitions come as their monitors grant, against their models; some learn.
TEST(Adversary, HostilePartitionsExceedNoEnforcedBound) {
  SystemGenerator generator(15);
  MeasuredSystems measured(16);
  std::mt19937_64 curves(17);
  int above_the_model = 0;
  for (int i = 0; i < setting("LATENZ_ADVERSARY_SYSTEMS", 300); ++i) {
    const System drawn = i % 2 == 0 ? generator.system() : measured.next(i % 4 == 1);
    const System curved = i % 3 == 0 ? with_curves(curves, drawn) : drawn;
    const System system = with_learning(generator, curved);
    for (const Mode mode : every_mode) {
      const SystemBound bounds = latenz::bound(system, mode);
      Adversary adversary(
          system, mode, bounds.enforced, 1, [] {}, latenz::Hostile::other_partitions);
      for (std::size_t source = 0; source < system.sources().size(); ++source) {
        adversary.search(source, 60);
      }
      for (std::size_t source = 0; source < system.sources().size(); ++source) {
        const std::uint32_t own = system.sources()[source].partition;
        const Attack& attack = adversary.attacks()[source];
        ASSERT_LE(attack.latency, bounds.enforced[own].latency) << "system " << i;
        for (std::size_t other = 0; other < attack.arrivals.size(); ++other) {
          above_the_model += breaks(system.sources()[other], attack.arrivals[other]) ? 1 : 0;
          if (system.sources()[other].partition == own) {
            expect_legal(system.sources()[other].arrival, attack.arrivals[other]);
          }
        }
      }
    }
  }
  EXPECT_GT(above_the_model, 100);
}

/// What was learned from waits in its own slots, and what is accepted behind it is released with
/// it.
TEST(Adversary, SwitchesMonitorsOnWhenThatIsWorstForOthers) {
  const auto backlog = [](bool learns) {
    Source often = counterexamples::every_10_ms(0, 2);
    often.arrival = latenz::Periodic(Duration(5), {}, {});
    often.monitor = counterexamples::vector({5});
    often.learns = learns;
    Source seldom = counterexamples::every_10_ms(1, 1);
    seldom.arrival = latenz::Periodic(Duration(1000), {}, {});
    seldom.monitor = counterexamples::vector({1000});
    often.top = seldom.top = Duration();
    return counterexamples::system({10, 10, 20}, {}, {often, seldom});
  };
  const System trusted = backlog(false);
  const System learning = backlog(true);
  const SystemBound without = latenz::bound(trusted, Mode::carry);
  const SystemBound bounds = latenz::bound(learning, Mode::carry);
  Adversary adversary(
      learning, Mode::carry, bounds.enforced, 1, [] {}, latenz::Hostile::other_partitions);
  adversary.search(1, 3000);
  adversary.simplify(1, 2000);
  const Attack& attack = adversary.attacks()[1];
  EXPECT_GT(attack.latency, without.queues[1].latency) << "of monitors that have learned";
  EXPECT_LE(attack.latency, bounds.enforced[1].latency);
  EXPECT_GT(attack.monitored_from[0], Instant());
  latenz::NoObserver observer;
  latenz::Simulator simulator(learning, Mode::carry, listed(attack.arrivals), latenz::endless,
                              false, observer);
  simulator.limit_arrivals();
  simulator.monitor_from(0, attack.monitored_from[0]);
  ASSERT_TRUE(simulator.run(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(simulator.figures()[1].max, attack.latency);
}

TEST(Adversary, RealisticSystemsComeCloseToTheirBoundsAndNeverAbove) {
  MeasuredSystems measured(11);
  Found found = search_systems([&] { return measured.next(false); });
  EXPECT_GE(found.median(Mode::plain), 0.95);
  EXPECT_GE(found.median(Mode::carry), 0.85);
}

TEST(Adversary, TinySystemsNeverExceedTheirBounds) {
  MeasuredSystems measured(12);
  Found found = search_systems([&] { return measured.next(true); });
  EXPECT_GE(found.median(Mode::plain), 0.9);
}

/// Found latencies are reachable: the first executions of top handlers take all that curves permit.
TEST(Adversary, SystemsWithCostCurvesComeCloseToTheirBoundsAndNeverAbove) {
  MeasuredSystems measured(18);
  std::mt19937_64 curves(19);
  int round = 0;
  Found found;
  for (; round < setting("LATENZ_ADVERSARY_SYSTEMS", 300); ++round) {
    search_system(with_curves(curves, measured.next(round % 2 == 0)),
                  static_cast<std::uint64_t>(round), 100, found);
  }
  std::cout << found;
  EXPECT_GE(found.median(Mode::plain), 0.9);
}

TEST(Adversary, SystemsWithDenseArrivalsNeverExceedTheirBounds) {
  SystemGenerator generator(13);
  Found found = search_systems([&] { return generator.system(); });
  EXPECT_GE(found.median(Mode::plain), 0.8);
}

}  // namespace
