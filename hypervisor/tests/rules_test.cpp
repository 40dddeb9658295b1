// SPDX-License-Identifier: Apache-2.0
// The dispatcher, driven as the hypervisor drives it, against the simulator: the same rules,
// written twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "counterexamples.hpp"
#include "fake_processor.hpp"
#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"
#include "random_system.hpp"

namespace {

using latenz::Duration;
using latenz::Instant;
using latenz::IrqRecord;
using latenz::Mode;
using latenz::System;
using Times = std::vector<std::vector<std::int64_t>>;

constexpr Mode modes[] = {Mode::plain, Mode::paper, Mode::carry};

Recorder simulated(const System& system, Mode mode, const Times& times) {
  Recorder recorder;
  latenz::Simulator simulator(system, mode, listed(times), INT64_MAX, false, recorder);
  EXPECT_TRUE(simulator.run(INT64_MAX));
  return recorder;
}

Recorder dispatched(const System& system, Mode mode, const Times& times,
                    Sections sections = Sections::preemptible) {
  const PlannedSystem planned(system, mode);
  FakeProcessor processor(system, planned, times, sections);
  processor.run();
  return processor.recorder();
}

bool same(const IrqRecord& one, const IrqRecord& other) {
  return one.source == other.source && one.handling == other.handling &&
         one.arrival == other.arrival && one.top_start == other.top_start && one.end == other.end;
}

void expect_same(const Recorder& simulated, const Recorder& dispatched) {
  ASSERT_EQ(simulated.irqs.size(), dispatched.irqs.size());
  for (std::size_t i = 0; i < simulated.irqs.size(); ++i) {
    ASSERT_TRUE(same(simulated.irqs[i], dispatched.irqs[i])) << "IRQ " << i;
  }
  ASSERT_EQ(simulated.joined(), dispatched.joined());
}

/// All but the top handlers' starts, which may be later.
void expect_same_ends(const Recorder& rules, const Recorder& whole) {
  ASSERT_EQ(rules.irqs.size(), whole.irqs.size());
  for (std::size_t i = 0; i < rules.irqs.size(); ++i) {
    IrqRecord irq = whole.irqs[i];
    ASSERT_GE(irq.top_start, rules.irqs[i].top_start) << "IRQ " << i;
    irq.top_start = rules.irqs[i].top_start;
    ASSERT_TRUE(same(rules.irqs[i], irq)) << "IRQ " << i;
  }
}

/// At every time that matters in a cycle of two slots, nothing, one or two IRQs of each source.
class EverySmallPattern {
 public:
  explicit EverySmallPattern(std::size_t most) : most_(most) {}

  template <typename Visit>
  void each(Visit visit) {
    times_ = {{}, {}};
    extend(0, 0, visit);
  }

 private:
  static constexpr std::int64_t last = 9;

  template <typename Visit>
  void extend(std::int64_t from, std::size_t source, Visit visit) {
    visit(times_);
    if (testing::Test::HasFatalFailure() || times_[0].size() + times_[1].size() == most_) {
      return;
    }
    for (std::int64_t at = from; at <= last; ++at) {
      for (std::size_t i = at == from ? source : 0; i < 2; ++i) {
        times_[i].push_back(at);
        extend(at, i, visit);
        times_[i].pop_back();
      }
    }
  }

  std::size_t most_;
  Times times_;
};

/// Arrivals that keep the models, and others among them.
Times too_dense(SystemGenerator& generator, const System& system) {
  Times times = generator.arrivals(system, 8);
  for (auto& each : times) {
    const std::int64_t last = each.back();
    for (int i = 0; i < 6; ++i) each.push_back(generator.up_to(last));
    std::ranges::sort(each);
  }
  return times;
}

latenz::Source source(std::uint32_t partition, std::int64_t top, std::int64_t bottom,
                      std::int64_t distance) {
  return {.partition = partition,
          .top = Duration(top),
          .bottom = Duration(bottom),
          .arrival = latenz::Unlimited(),
          .monitor = counterexamples::vector({distance})};
}

/// Slots of 5 and 4 ns; bits of the variant: a switch takes time, a context switch does, a top
/// handler does, the sources have a queue each.
System small_system(std::uint32_t variant) {
  const auto bit = [variant](unsigned number) {
    return static_cast<std::int64_t>((variant >> number) & 1U);
  };
  return counterexamples::system(
      {5, 4}, counterexamples::costs(bit(0), bit(2), 0, bit(1)),
      {source(1, bit(2), 2, 3), source(static_cast<std::uint32_t>(bit(3)), 0, 1 + bit(1), 2)});
}

}  // namespace

TEST(Rules, RandomSystemsRunAsSimulatedIrqByIrqAndInstantByInstant) {
  SystemGenerator generator(1);
  std::size_t irqs = 0;
  std::size_t handled[3] = {};
  for (int round = 0; round < 6000; ++round) {
    const System system = generator.system();
    const Times times = generator.arrivals(system, 12);
    for (const Mode mode : modes) {
      const Recorder expected = simulated(system, mode, times);
      ASSERT_NO_FATAL_FAILURE(expect_same(expected, dispatched(system, mode, times)))
          << "round " << round << ", mode " << static_cast<int>(mode);
      irqs += expected.irqs.size();
      for (const IrqRecord& irq : expected.irqs) {
        ++handled[static_cast<std::size_t>(irq.handling)];
      }
    }
  }
  EXPECT_GT(irqs, 100'000U);
  for (const std::size_t each : handled) {
    EXPECT_GT(each, irqs / 20) << "all handlings occur";
  }
}

TEST(Rules, CounterexamplesRunAsSimulated) {
  for (const Counterexample& each : counterexamples::all()) {
    for (const Mode mode : modes) {
      const Recorder recorder = dispatched(each.system, mode, each.arrivals);
      ASSERT_NO_FATAL_FAILURE(expect_same(simulated(each.system, mode, each.arrivals), recorder))
          << each.name;
      std::vector<latenz::SourceFigures> figures(each.system.sources().size());
      for (const IrqRecord& irq : recorder.irqs) {
        figures[irq.source].add(irq.end - irq.arrival, irq.handling);
      }
      for (std::size_t i = 0; i < each.expected.size(); ++i) {
        EXPECT_EQ(figures[i].max.ns(), each.expected[i].simulated[static_cast<std::size_t>(mode)])
            << each.name << ", source " << i;
      }
    }
  }
}

TEST(Rules, EveryCoincidenceOfUpToFourIrqsRunsAsSimulated) {
  std::size_t patterns = 0;
  for (std::uint32_t variant = 0; variant < 16; ++variant) {
    const System system = small_system(variant);
    EverySmallPattern(4).each([&](const Times& times) {
      for (const Mode mode : {Mode::paper, Mode::carry}) {
        const Recorder expected = simulated(system, mode, times);
        ASSERT_NO_FATAL_FAILURE(expect_same(expected, dispatched(system, mode, times)))
            << "variant " << variant << ", mode " << static_cast<int>(mode);
        ASSERT_NO_FATAL_FAILURE(
            expect_same_ends(expected, dispatched(system, mode, times, Sections::whole)))
            << "variant " << variant << ", mode " << static_cast<int>(mode);
      }
      ++patterns;
    });
  }
  EXPECT_GT(patterns, 100'000U);
}

TEST(Rules, SourcesThatExceedTheirModelsAreMaskedAsSimulated) {
  SystemGenerator generator(5);
  std::size_t masked = 0;
  std::size_t put_off = 0;
  for (int round = 0; round < 3000; ++round) {
    const System random = generator.system();
    latenz::Costs costs = random.costs();
    costs.limit = Duration(generator.scaled(0, 1));
    const auto slots = random.table().slots();
    const auto sources = random.sources();
    const System system({slots.begin(), slots.end()}, costs, {sources.begin(), sources.end()});
    const Times times = too_dense(generator, system);
    for (const Mode mode : modes) {
      Recorder expected;
      latenz::Simulator simulator(system, mode, listed(times), INT64_MAX, false, expected);
      simulator.limit_arrivals();
      ASSERT_TRUE(simulator.run(INT64_MAX));
      PlannedSystem planned(system, mode);
      planned.limit(system);
      FakeProcessor processor(system, planned, times, Sections::preemptible);
      processor.run();
      const Recorder& found = processor.recorder();
      ASSERT_EQ(expected.irqs.size(), found.irqs.size()) << "round " << round;
      for (std::size_t i = 0; i < found.irqs.size(); ++i) {
        IrqRecord irq = found.irqs[i];  // a hypervisor does not know when a masked one was raised
        ASSERT_GE(irq.arrival, expected.irqs[i].arrival);
        put_off += irq.arrival > expected.irqs[i].arrival ? 1 : 0;
        irq.arrival = expected.irqs[i].arrival;
        ASSERT_TRUE(same(expected.irqs[i], irq)) << "round " << round << ", IRQ " << i;
      }
      ASSERT_EQ(expected.joined(), found.joined()) << "round " << round;
      for (std::size_t i = 0; i < times.size(); ++i) {
        masked += FakeProcessor<>::dispatcher().statistics(static_cast<std::uint16_t>(i)).masked;
      }
    }
  }
  EXPECT_GT(masked, 50'000U);
  EXPECT_GT(put_off, 50'000U);
}

TEST(Rules, SectionsThatAreNotInterruptedOnlyPutOffTopHandlersAndBoundsHold) {
  SystemGenerator generator(2);
  std::size_t bounded = 0;
  std::size_t put_off = 0;
  for (int round = 0; round < 4000; ++round) {
    const System system = generator.system();
    const Times times = generator.arrivals(system, 12);
    for (const Mode mode : modes) {
      const latenz::SystemBound bounds = latenz::bound(system, mode);
      const Recorder rules = simulated(system, mode, times);
      const Recorder whole = dispatched(system, mode, times, Sections::whole);
      ASSERT_NO_FATAL_FAILURE(expect_same_ends(rules, whole)) << "round " << round;
      for (std::size_t i = 0; i < whole.irqs.size(); ++i) {
        const IrqRecord& irq = whole.irqs[i];
        const auto& queue = bounds.queues[system.sources()[irq.source].partition];
        if (queue.verdict == latenz::Verdict::bounded) {
          ASSERT_LE(irq.end - irq.arrival, queue.latency) << "round " << round;
          ++bounded;
        }
        put_off += irq.top_start > rules.irqs[i].top_start ? 1 : 0;
      }
    }
  }
  EXPECT_GT(bounded, 100'000U);
  EXPECT_GT(put_off, 500U);
}
