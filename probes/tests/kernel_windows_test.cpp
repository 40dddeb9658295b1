// SPDX-License-Identifier: Apache-2.0
#include "kernel_windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "interference_curve.hpp"

namespace latenz::probe {
namespace {

constexpr std::int32_t measured_priority = 4;
// NOLINTBEGIN(bugprone-throwing-static-initialization): a test may end there
const Task idle{
    .address = 0x1000, .pid = 0, .priority = 120, .preempt_count = 1, .name = "swapper"};
const Task worker{
    .address = 0x2000, .pid = 7, .priority = 120, .preempt_count = 2, .name = "worker"};
const Task measured{.address = 0x3000,
                    .pid = 9,
                    .priority = measured_priority,
                    .preempt_count = 2,
                    .name = "cyclictest"};
// NOLINTEND(bugprone-throwing-static-initialization)

/// One CPU whose time a test moves on.
class Cpu {
 public:
  explicit Cpu(bool preemptible = true)
      : windows({.preemptible = preemptible, .priority = measured_priority}) {
    windows.counter_read(0, 0);
    windows.switched(worker);
    count(0);
    windows.returned(now, false, true, {});
  }

  Cpu& run(std::uint64_t instructions) {
    now += instructions;
    return *this;
  }
  Cpu& mask() { return tell(&KernelWindows::masked, false); }
  Cpu& unmask() { return tell(&KernelWindows::masked, true); }
  Cpu& count(std::uint32_t value) {
    windows.counted(now, value, {0x10, 0});
    return *this;
  }
  Cpu& test(bool needed = false) {
    windows.tested(now, 0, needed, {0x20, 0});
    return *this;
  }
  Cpu& interrupt(std::uint64_t own, std::uint64_t source = 27) {
    windows.interrupt_entered(now);
    windows.interrupt_named(source);
    run(own);
    windows.returned(now, false, true, {});
    return *this;
  }

  /// Calls the scheduler from preemptible code, which takes 10 + 20 + 5 instructions until it runs.
  Cpu& schedule(const Task& next) {
    count(1);
    windows.schedule_called(now, 1, {0x30, 0x31});
    run(10).mask().run(20);
    windows.switched(next);
    unmask().run(5);
    windows.schedule_returned(now, {0x33, 0});
    if (next.pid != 0) {
      count(0);
      windows.loop_tested(now, false, {0x34, 0});
    }
    return *this;
  }

  /// The measured thread's timer, due `late` ago, wakes it while another runs; then it sleeps.
  Cpu& wake_up(std::uint64_t handler = 100, std::uint64_t late = 0) {
    windows.interrupt_entered(now);
    windows.wake_up(measured, windows.time_ns(now) - late);
    run(handler);
    windows.preempts_kernel(now, {0x40, 0});
    windows.counted(now, 1, {});
    windows.masked(now, true, {});
    schedule(measured);
    run(3);
    windows.user_read_counter(now, {0x50, 0});
    return schedule(worker);
  }

  [[nodiscard]] std::uint64_t longest(Term term) const { return windows.longest(term).ns; }

  KernelWindows windows;
  std::uint64_t now = 0;

 private:
  Cpu& tell(void (KernelWindows::*event)(std::uint64_t, bool, Place), bool on) {
    (windows.*event)(now, on, {0x60, 0x61});
    return *this;
  }
};

/// What a term is between two wake-ups, besides what those make.
std::uint64_t between(Cpu& cpu, Term term) {
  cpu.wake_up();
  return cpu.longest(term);
}

TEST(KernelWindows, MaskedSectionLastsUntilTheUnmasking) {
  Cpu cpu;
  cpu.wake_up().mask().run(500).unmask().run(900);
  EXPECT_EQ(between(cpu, Term::blocking), 500U);
}

TEST(KernelWindows, SectionWithoutPreemptionLastsUntilTheTest) {
  Cpu cpu;
  cpu.wake_up().count(1).run(400).count(0).run(30).test().run(1000);
  EXPECT_EQ(between(cpu, Term::blocking), 430U);
}

TEST(KernelWindows, EnablingThatDoesNotTestEndsNothing) {  // counterexample 3 to rtsl
  Cpu cpu;
  cpu.wake_up().count(1).run(100).count(0).run(1).mask().run(100).unmask().run(1).count(1).run(100);
  cpu.count(0).test();
  EXPECT_EQ(between(cpu, Term::blocking), 302U);
}

TEST(KernelWindows, TestWhileInterruptsAreMaskedEndsNothing) {
  Cpu cpu;
  cpu.wake_up().count(1).run(100).mask().count(0).run(10).test().run(10).unmask().run(10).test();
  EXPECT_EQ(between(cpu, Term::blocking), 130U);
}

TEST(KernelWindows, ReturnOfAnInterruptIsAPointIfPreemptible) {
  Cpu cpu;
  cpu.wake_up().count(1).run(100).count(0).run(10).interrupt(1000).run(5000);
  EXPECT_EQ(between(cpu, Term::blocking), 110U);
}

TEST(KernelWindows, ReturnOfAnInterruptIsNoneWithoutPreemption) {
  Cpu cpu;
  cpu.wake_up().count(1).run(100).interrupt(1000).run(50).count(0).test();
  EXPECT_EQ(between(cpu, Term::blocking), 150U);
}

TEST(KernelWindows, WayToUserModeIsAPoint) {
  Cpu cpu;
  cpu.wake_up().count(1).run(100).count(0).mask().run(10);
  cpu.windows.returned(cpu.now, true, true, {});
  cpu.run(10'000);
  cpu.windows.exception_entered(cpu.now, true, {});
  cpu.run(7).unmask().run(3000);
  EXPECT_EQ(between(cpu, Term::blocking), 110U);
}

TEST(KernelWindows, SchedulerBeginsAtThePointThatNeedsIt) {
  Cpu cpu;
  cpu.wake_up().count(1).run(50).count(0).test(true).run(40).schedule(worker);
  EXPECT_EQ(between(cpu, Term::scheduler), 40U + 35U);
}

TEST(KernelWindows, LastDecrementThatNeedsTheSchedulerIsAPoint) {
  Cpu cpu;
  cpu.wake_up().count(1).run(50);
  cpu.windows.tested(cpu.now, 1, true, {});
  cpu.run(2).count(0).run(40).schedule(worker);
  cpu.wake_up();
  EXPECT_EQ(cpu.longest(Term::scheduler), 40U + 35U);
  EXPECT_EQ(cpu.longest(Term::blocking), 52U);
}

TEST(KernelWindows, SwitchIsHeldFromTheMaskingToThePoint) {
  Cpu cpu;
  cpu.wake_up();
  cpu.count(1);
  cpu.windows.schedule_called(cpu.now, 1, {});
  cpu.run(10).mask().run(200);
  cpu.windows.switched(worker);
  cpu.unmask().run(50).count(0).run(60);
  cpu.windows.loop_tested(cpu.now, false, {});
  cpu.windows.schedule_returned(cpu.now, {});
  EXPECT_EQ(between(cpu, Term::switching), 310U);
  EXPECT_EQ(cpu.longest(Term::scheduler), 260U);
}

TEST(KernelWindows, IdleIsItsWayInAndItsWayOut) {
  Cpu cpu;
  cpu.wake_up().schedule(idle);
  cpu.run(300);
  cpu.windows.waits(cpu.now, {});
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.counter_read(cpu.now, cpu.now + 1'000'000);
  cpu.run(70);
  cpu.windows.returned(cpu.now, false, true, {});
  cpu.run(40);
  cpu.windows.waits(cpu.now, {});
  cpu.run(90).schedule(worker);
  cpu.wake_up();
  EXPECT_EQ(cpu.longest(Term::idle_in), 325U);  // 20 + 5 of the scheduler after the masking
  EXPECT_EQ(cpu.longest(Term::idle_out), 90U);
  EXPECT_EQ(cpu.longest(Term::idle_direct), 0U);
  EXPECT_EQ(cpu.windows.slept_ns(), 1'000'000U);
}

TEST(KernelWindows, IdleThatDoesNotSleepGoesStraightToTheScheduler) {
  Cpu cpu;
  cpu.wake_up().schedule(idle).run(300).schedule(worker);
  EXPECT_EQ(between(cpu, Term::idle_direct), 325U);
}

TEST(KernelWindows, NestedInterruptsCountForThemselves) {
  Cpu cpu;
  cpu.wake_up();
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.interrupt_named(1);
  cpu.run(500);  // softirqs, say
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.interrupt_named(2);
  cpu.run(40);
  cpu.windows.returned(cpu.now, false, true, {});
  cpu.run(60);
  cpu.windows.returned(cpu.now, false, true, {});
  cpu.wake_up();
  EXPECT_EQ(cpu.windows.sources().at(1).longest, 560U);
  EXPECT_EQ(cpu.windows.sources().at(2).longest, 40U);
}

TEST(KernelWindows, ExceptionInAnInterruptEndsItNot) {
  Cpu cpu;
  cpu.wake_up();
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.interrupt_named(1);
  cpu.run(10);
  cpu.windows.exception_entered(cpu.now, false, {});
  cpu.run(20);
  cpu.windows.returned(cpu.now, false, false, {});
  cpu.run(30);
  cpu.windows.returned(cpu.now, false, true, {});
  cpu.wake_up();
  EXPECT_EQ(cpu.windows.sources().at(1).longest, 60U);
}

TEST(KernelWindows, TimeOfInterruptsIsNotThatOfSections) {
  Cpu cpu;
  cpu.wake_up().count(1).run(10).interrupt(10'000).run(10).count(0).test();
  EXPECT_EQ(between(cpu, Term::blocking), 20U);
}

TEST(KernelWindows, MaskingInAnInterruptIsNoSection) {
  Cpu cpu;
  cpu.wake_up();
  cpu.windows.interrupt_entered(cpu.now);
  cpu.run(10).unmask().run(5000).mask().run(10);
  cpu.windows.returned(cpu.now, false, true, {});
  EXPECT_EQ(between(cpu, Term::blocking), 0U);
}

TEST(KernelWindows, KernelThatDoesNotPreemptIsHeldBetweenItsPoints) {
  Cpu cpu(false);
  cpu.wake_up();
  cpu.windows.returned(cpu.now, true, true, {});
  cpu.run(10'000);
  cpu.windows.exception_entered(cpu.now, true, {});
  cpu.run(700).mask().run(10).unmask().interrupt(90).run(90).test().run(400);
  cpu.mask().run(5);
  cpu.windows.returned(cpu.now, true, true, {});
  cpu.run(10'000);
  cpu.windows.exception_entered(cpu.now, true, {});
  cpu.wake_up();
  EXPECT_EQ(cpu.longest(Term::blocking), 800U);
}

TEST(KernelWindows, LatencyIsFromDueToRunning) {
  Cpu cpu;
  cpu.wake_up().run(1000).wake_up(100, 50);
  cpu.wake_up(100, 20);
  ASSERT_EQ(cpu.windows.wake_ups(), 3U);
  // late, handler, then 35 instructions of the scheduler
  EXPECT_EQ(cpu.windows.segments().at(0).longest_latency, 50U + 100U + 35U);
  EXPECT_EQ(cpu.windows.segments().at(1).longest_latency, 20U + 100U + 35U);
  EXPECT_EQ(cpu.longest(Term::to_user), 3U);
}

TEST(KernelWindows, WhatComesBeforeTheFirstAndAfterTheLastWakeUpCountsNot) {
  Cpu cpu;
  cpu.mask().run(9000).unmask().interrupt(9000);
  cpu.wake_up().mask().run(50).unmask().wake_up().mask().run(7000).unmask().interrupt(8000);
  EXPECT_EQ(cpu.longest(Term::blocking), 50U);
  EXPECT_EQ(cpu.windows.longest_execution(), 100U);
}

TEST(KernelWindows, EveryInstructionIsOfAThreadOrOfAnInterrupt) {
  Cpu cpu;
  cpu.run(100).interrupt(30).run(20);
  cpu.windows.interrupt_entered(cpu.now);
  cpu.run(5);
  EXPECT_EQ(cpu.windows.thread_time(cpu.now), 120U);
  EXPECT_EQ(cpu.windows.interrupt_time(cpu.now), 35U);
}

bool reports(const Cpu& cpu, const std::string& text) {
  return cpu.windows.report(cpu.now).find(text) != std::string::npos;
}

TEST(KernelWindows, TellsAThreadOfTheSamePriority) {
  Cpu cpu;
  cpu.wake_up();
  EXPECT_TRUE(reports(cpu, R"("rivals": [])"));
  Task rival = worker;
  rival.pid = 11;
  rival.address = 0x4000;
  rival.priority = measured_priority;
  rival.name = "other";
  cpu.schedule(rival).schedule(worker).wake_up();
  EXPECT_TRUE(reports(cpu, R"("name": "other", "priority": 4, "times": 1)"));
}

TEST(KernelWindows, TellsThatALowerThreadWasPreferred) {  // as RT throttling does
  Cpu cpu;
  cpu.wake_up();
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.wake_up(measured, cpu.now);
  cpu.windows.preempts_kernel(cpu.now, {});
  Task lower = worker;
  lower.address = 0x5000;
  lower.pid = 12;
  cpu.schedule(lower);
  EXPECT_TRUE(reports(cpu, R"("passed_over": 0)"));  // not before the next wake-up
  cpu.schedule(measured).schedule(worker);
  EXPECT_TRUE(reports(cpu, R"("passed_over": 1)"));
}

TEST(KernelWindows, TellsThatALowerThreadWentOn) {  // as RT throttling does, without a switch
  Cpu cpu;
  cpu.wake_up();
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.wake_up(measured, cpu.now);
  cpu.windows.preempts_kernel(cpu.now, {});
  cpu.schedule(worker).run(100'000).schedule(measured).schedule(worker);
  EXPECT_TRUE(reports(cpu, R"("passed_over": 1)"));
}

TEST(KernelWindows, AWakeUpBehindTheChoiceIsNoPreference) {
  Cpu cpu;
  cpu.wake_up().count(1);
  cpu.windows.schedule_called(cpu.now, 1, {});
  cpu.run(10).mask().run(20).unmask();
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.wake_up(measured, cpu.now);
  cpu.run(50);
  cpu.windows.returned(cpu.now, false, true, {});
  cpu.windows.schedule_returned(cpu.now, {});
  cpu.count(0).schedule(measured).schedule(worker);
  EXPECT_TRUE(reports(cpu, R"("passed_over": 0)"));
}

TEST(KernelWindows, TellsThatTheThreadWasWokenAtAnotherPriority) {  // such wake-ups are not bounded
  Cpu cpu;
  cpu.wake_up();
  Task lowered = measured;
  lowered.priority = 120;
  cpu.windows.wake_up(lowered, cpu.now);
  EXPECT_TRUE(reports(cpu, R"("lost": {})"));  // not before the next wake-up
  cpu.wake_up();
  EXPECT_TRUE(reports(cpu, "was woken at another priority"));
}

TEST(KernelWindows, TellsThatAnInterruptWasNotSeenToBegin) {
  Cpu cpu;
  cpu.wake_up();
  cpu.windows.preempts_kernel(cpu.now, {});
  EXPECT_TRUE(reports(cpu, "whose begin was not seen"));
}

TEST(KernelWindows, TellsThatTheCountIsNotTheOneInMemory) {
  Cpu cpu;
  cpu.count(1);
  cpu.windows.schedule_called(cpu.now, 3, {});
  EXPECT_TRUE(reports(cpu, R"("wrong_counts": 1)"));
}

TEST(KernelWindows, TellsThatTheKernelWasPreempted) {
  Cpu cpu(false);
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.preempts_kernel(cpu.now, {});
  EXPECT_TRUE(reports(cpu, R"("preempted_in_kernel": 1)"));
}

TEST(KernelWindows, TellsTimeThatNobodyKnowsOf) {
  Cpu cpu;
  cpu.wake_up().run(10);
  cpu.windows.counter_read(cpu.now, cpu.now + 1000);
  EXPECT_TRUE(reports(cpu, "the counter is ahead of the instructions"));
}

TEST(KernelWindows, TellsInstructionsThatTookNoTime) {
  Cpu cpu;
  cpu.wake_up().run(1000);
  cpu.windows.counter_read(cpu.now, cpu.windows.time_ns(cpu.now) - 10);  // ten were begun again
  EXPECT_FALSE(reports(cpu, "the counter is behind"));
  cpu.run(1000);
  cpu.windows.counter_read(cpu.now, cpu.windows.time_ns(cpu.now) - 100);
  EXPECT_TRUE(reports(cpu, "the counter is behind the instructions"));
}

TEST(KernelWindows, TellsWakeUpsThatCameTwice) {
  Cpu cpu;
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.wake_up(measured, cpu.now);
  cpu.windows.wake_up(measured, cpu.now);
  EXPECT_TRUE(reports(cpu, R"("missed": 1)"));
}

TEST(KernelWindows, SegmentsAddUpAndStayFew) {
  Cpu cpu;
  constexpr std::uint64_t times = 5000;
  for (std::uint64_t i = 0; i <= times; ++i) {
    cpu.wake_up(100, i % 17).mask().run(i == 3210 ? 4321 : 10).unmask();
  }
  std::uint64_t sum = 0;
  std::uint64_t longest = 0;
  for (const Segment& segment : cpu.windows.segments()) {
    sum += segment.wake_ups;
    longest = std::max(longest, segment.longest[static_cast<std::size_t>(Term::blocking)]);
  }
  EXPECT_LE(cpu.windows.segments().size(), KernelWindows::most_segments);
  EXPECT_GE(cpu.windows.segments().size(), KernelWindows::most_segments / 2);
  EXPECT_LE(times - sum, 32U);  // in the open one
  EXPECT_EQ(longest, 4321U);
  EXPECT_EQ(cpu.longest(Term::blocking), 4321U);
}

TEST(KernelWindows, CountIsThatOfTheNextThread) {
  Cpu cpu;
  cpu.wake_up().count(1);
  cpu.windows.schedule_called(cpu.now, 1, {});
  cpu.run(10).mask().run(20);
  Task preemptible = worker;
  preemptible.address = 0x6000;
  preemptible.pid = 13;
  preemptible.preempt_count = 0;
  cpu.windows.switched(preemptible);
  cpu.unmask().run(1000).count(0);
  EXPECT_EQ(between(cpu, Term::scheduler), 35U);  // of the others, not 1030
}

TEST(KernelWindows, SegmentTakesTheGreaterOfBoth) {
  Segment one{.wake_ups = 2, .longest_latency = 30};
  Segment other{.wake_ups = 3, .longest_latency = 20};
  one.longest = {1, 5, 0, 0, 0, 7, 2};
  other.longest = {4, 3, 0, 9, 0, 7, 1};
  one.interference.add({10, 5});
  other.interference.add({5, 4});
  one.take(other);
  EXPECT_EQ(one.wake_ups, 5U);
  EXPECT_EQ(one.longest_latency, 30U);
  EXPECT_EQ(one.longest, (std::array<std::uint64_t, terms>{4, 5, 0, 9, 0, 7, 2}));
  EXPECT_EQ(one.interference.at(9), 4U);
  EXPECT_EQ(one.interference.at(10), 5U);
}

TEST(KernelWindows, SleepIsBeforeWhatWakes) {
  Cpu cpu;
  cpu.wake_up().schedule(idle);
  cpu.interrupt(10);
  cpu.windows.waits(cpu.now, {});
  cpu.interrupt(20);  // does not look at the clock
  cpu.windows.counter_read(cpu.now, cpu.now + 50'000);
  cpu.schedule(worker).run(200'000).wake_up(1);
  EXPECT_EQ(cpu.windows.interference().at(40'000), 20U);
  EXPECT_EQ(cpu.windows.interference().at(60'000), 30U);
}

TEST(KernelWindows, SleepSeparatesExecutions) {
  Cpu cpu;
  cpu.wake_up().schedule(idle);
  cpu.interrupt(10);
  cpu.windows.waits(cpu.now, {});
  cpu.windows.interrupt_entered(cpu.now);
  cpu.windows.counter_read(cpu.now, cpu.now + 50'000);
  cpu.run(10);
  cpu.windows.returned(cpu.now, false, true, {});
  cpu.schedule(worker).wake_up();
  EXPECT_EQ(cpu.windows.sources().at(27).window.count(), 1U);
  const auto& steps = cpu.windows.interference();
  EXPECT_EQ(steps.at(49'000), 110U);
  EXPECT_EQ(steps.at(60'000), 120U);
}

// Against every instant: one after the other of a random program, an arrival is followed by hand.

struct Instant {
  bool interrupts_on;
  std::uint32_t count;
  bool point;  ///< the scheduler would be called here if it were needed
};

/// How long an arrival is held, by the definition: until its interrupt is taken, if that can
/// preempt, else from there on until a point.
std::uint64_t held(const std::vector<Instant>& instants, std::size_t arrival) {
  std::size_t taken = arrival;
  while (taken < instants.size() && !instants[taken].interrupts_on) ++taken;
  if (taken == instants.size()) return 0;
  if (instants[taken].count == 0) return taken - arrival;
  std::size_t point = taken;
  while (point < instants.size() && !instants[point].point) ++point;
  return point == instants.size() ? 0 : point - arrival;
}

TEST(KernelWindows, LongestSectionsEqualThoseOfEveryInstant) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    Cpu cpu;
    cpu.wake_up();
    std::vector<Instant> instants;
    bool on = true;
    std::uint32_t count = 0;
    const auto run = [&](unsigned n, bool point = false) {
      for (unsigned i = 0; i < n; ++i) instants.push_back({on, count, point && i == 0});
      cpu.run(n);
    };
    run(3);
    for (unsigned i = 0; i < 60; ++i) {
      bool point = false;
      switch (draw(6)) {
        case 0:
          on = false;
          cpu.mask();
          break;
        case 1:
          on = true;
          cpu.unmask();
          break;
        case 2:
          cpu.count(++count);
          break;
        case 3:
          if (count > 0) cpu.count(--count);
          break;
        case 4:
          point = on && count == 0;
          cpu.windows.tested(cpu.now, count, false, {});
          break;
        default:
          if (on) {
            point = count == 0;
            cpu.interrupt(1 + draw(9));
          }
      }
      run(1 + draw(12), point);
    }
    on = true;
    cpu.unmask();
    count = 0;
    cpu.count(0).test();
    run(1, true);
    std::uint64_t longest = 0;
    for (std::size_t i = 0; i < instants.size(); ++i) {
      longest = std::max(longest, held(instants, i));
    }
    EXPECT_EQ(between(cpu, Term::blocking), longest) << "seed " << seed;
  }
}

// Windows of interrupts

TEST(Interference, StaircaseEqualsEveryWindow) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::size_t n = 1 + random() % 12;
    std::vector<std::uint64_t> begins;
    std::vector<std::uint64_t> owns;
    std::uint64_t at = random() % 5;
    for (std::size_t i = 0; i < n; ++i) {
      begins.push_back(at);
      owns.push_back(1 + random() % 20);
      at += random() % 30;
    }
    Staircase steps(1000);
    ExecutionWindow window;
    for (std::size_t i = 0; i < n; ++i) window.add(begins[i], owns[i], steps);
    for (std::uint64_t length = 1; length <= at + 2; ++length) {
      std::uint64_t most = 0;
      for (const std::uint64_t from : begins) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          sum += begins[i] >= from && begins[i] < from + length ? owns[i] : 0;
        }
        most = std::max(most, sum);
      }
      ASSERT_EQ(steps.at(length - 1), most) << "seed " << seed << " length " << length;
    }
    EXPECT_EQ(window.horizon(), std::numeric_limits<std::uint64_t>::max());
  }
}

TEST(Interference, RoundingNeverLowersAWindow) {
  std::mt19937 random(1);
  Staircase exact(100'000);
  Staircase rounded(16);
  for (int i = 0; i < 3000; ++i) {
    const CurveStep step{random() % 100'000, random() % 100'000};
    exact.add(step);
    rounded.add(step);
  }
  EXPECT_LE(rounded.steps().size(), 32U);
  for (std::uint64_t span = 0; span < 100'000; span += 7) {
    ASSERT_GE(rounded.at(span), exact.at(span));
  }
}

TEST(Interference, HorizonIsWhereMoreExecutionsMayBeThanWereLookedAt) {
  Staircase steps(1000);
  ExecutionWindow window;
  for (std::uint64_t i = 0; i < 1000; ++i) window.add(i * 100, 10, steps);
  EXPECT_EQ(window.horizon(), (ExecutionWindow::depth - 1) * 100);
  EXPECT_EQ(steps.at(window.horizon() - 1), (ExecutionWindow::depth - 1) * 10);
  EXPECT_EQ(window.shortest(3), 300U);
  EXPECT_EQ(window.largest(3), 40U);
}

}  // namespace
}  // namespace latenz::probe
