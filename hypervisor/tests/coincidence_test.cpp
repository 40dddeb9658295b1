// SPDX-License-Identifier: Apache-2.0
// Every sequence of what can happen, up to some length, at the same time or later: the dispatcher
// against a plain model after each step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "dispatcher.hpp"
#include "model.hpp"
#include "roomy.hpp"

namespace {

using latenz::Duration;
using latenz::Instant;
using latenz::hypervisor::Mode;
using latenz::hypervisor::PartitionIndex;
using latenz::hypervisor::PlannedSlot;
using latenz::hypervisor::PlannedSource;
using Dispatcher = latenz::hypervisor::BasicDispatcher<Model::room>;

enum class Event : std::uint8_t {
  edge,     ///< the slot's end; time goes on to it, if it has not come
  raise_0,  ///< of partition 0, monitored
  raise_1,  ///< of partition 1, monitored
  raise_2,  ///< of partition 1, not monitored
  late_1,   ///< as raise_1, but it arrived just before the last edge
  finish,   ///< a bottom handler ends
  execute,  ///< for 1, which takes 1
  next,
  wait,  ///< for 2
  restart_1,
  stop_1,
};

std::ostream& operator<<(std::ostream& out, const std::vector<Event>& sequence) {
  for (const Event event : sequence) {
    out << static_cast<int>(event) << ' ';
  }
  return out;
}

constexpr Duration distances_0[] = {Duration(2)};
constexpr Duration distances_1[] = {Duration(1), Duration(4)};
constexpr PlannedSlot slots[] = {{0, Duration(3)}, {1, Duration(3)}, {1, Duration(2)}};
constexpr PlannedSource sources[] = {{.partition = 0,
                                      .monitored = true,
                                      .distances = distances_0,
                                      .bottom = Duration(2),
                                      .learned = 0,
                                      .learn_events = 0},
                                     {.partition = 1,
                                      .monitored = true,
                                      .distances = distances_1,
                                      .bottom = Duration(3),
                                      .learned = 0,
                                      .learn_events = 0},
                                     {.partition = 1,
                                      .monitored = false,
                                      .distances = {},
                                      .bottom = Duration(1),
                                      .learned = 0,
                                      .learn_events = 0}};

/// Dispatcher and model, told the same; each answer is compared.
class Pair {
 public:
  explicit Pair(Mode mode) : model_(mode) {
    dispatcher().begin({.mode = mode, .slots = slots, .sources = sources, .epoch = {}});
  }

  /// False: that cannot happen now.
  bool apply(Event event) {
    switch (event) {
      case Event::edge:
        now_ = std::max(now_, model_.next_edge());
        model_.start_slot();
        dispatcher().start_slot();
        return true;
      case Event::raise_0:
        return raise(0, now_);
      case Event::raise_1:
        return raise(1, now_);
      case Event::raise_2:
        return raise(2, now_);
      case Event::late_1:
        return model_.slot_start() > 0 && raise(1, model_.slot_start() - 1);
      case Event::finish:
        finish();
        return true;
      case Event::execute:
        ++now_;
        model_.charge(1);
        dispatcher().charge(Duration(1));
        return true;
      case Event::next:
        next();
        return true;
      case Event::wait:
        now_ += 2;
        return true;
      case Event::restart_1:
        model_.restart(1);
        dispatcher().restart(1);
        return true;
      case Event::stop_1:
        model_.stop(1);
        dispatcher().stop(1);
        return true;
    }
    return false;
  }

  /// What they have become.
  void compare() {
    const Dispatcher& dispatcher = Pair::dispatcher();
    ASSERT_EQ(dispatcher.slot_end().ns(), model_.next_edge());
    ASSERT_EQ(dispatcher.idle(), model_.idle());
    for (PartitionIndex partition = 0; partition < 2; ++partition) {
      const auto& queue = model_.pending(partition);
      ASSERT_EQ(dispatcher.queue(partition).size(), queue.size());
      if (!queue.empty()) {
        ASSERT_EQ(dispatcher.queue(partition).head().source, queue.front().source);
      }
    }
    for (std::uint16_t source = 0; source < Model::sources; ++source) {
      compare_counts(dispatcher.statistics(source), model_.counts[source]);
    }
  }

 private:
  static Dispatcher& dispatcher() {
    static Roomy<Dispatcher> one;
    return one;
  }

  /// Edges that have come are served first, and each source's interrupts come in order.
  bool raise(std::uint16_t source, std::int64_t arrival) {
    if (now_ >= model_.next_edge() || arrival < last_arrival_[source]) return false;
    last_arrival_[source] = arrival;
    const Model::Decision expected = model_.raise(source, arrival);
    const auto top = dispatcher().raise(source, Instant(arrival), Instant(now_));
    EXPECT_EQ(top.handling, expected.handling);
    EXPECT_EQ(top.asked, expected.asked);
    EXPECT_EQ(top.accepted, expected.accepted);
    return true;
  }

  void finish() {
    const auto expected = model_.finish();
    const auto finished = dispatcher().finish_bottom(Instant(now_));
    ASSERT_EQ(finished.any, expected.has_value());
    if (!expected) return;
    EXPECT_EQ(finished.source, expected->source);
    EXPECT_EQ(finished.handling, expected->handling);
    EXPECT_EQ(finished.timed, expected->timed);
    if (expected->timed) {
      EXPECT_EQ(finished.latency.ns(), now_ - expected->arrival);
    }
  }

  void next() {
    const Model::Step expected = model_.next();
    const auto next = dispatcher().next();
    EXPECT_EQ(next.partition, static_cast<PartitionIndex>(expected.partition));
    EXPECT_EQ(next.job_started, expected.started);
    EXPECT_EQ(next.job_ended, expected.ended);
    EXPECT_EQ(next.overrun, expected.overrun);
    EXPECT_EQ(next.interposed, expected.budget.has_value());
    if (expected.budget) {
      EXPECT_EQ(next.budget.ns(), *expected.budget);
    }
  }

  static void compare_counts(const latenz::hypervisor::SourceStatistics& statistics,
                             const Model::Counts& counts) {
    ASSERT_EQ(statistics.raised, counts.raised);
    ASSERT_EQ(statistics.completed, counts.completed);
    ASSERT_EQ(statistics.dropped, counts.dropped);
    ASSERT_EQ(statistics.outside, counts.outside);
    ASSERT_EQ(statistics.jobs, counts.jobs);
    ASSERT_EQ(statistics.overruns, counts.overruns);
    ASSERT_EQ(statistics.denied, counts.denied);
  }

  Model model_;
  std::int64_t now_ = 0;
  std::int64_t last_arrival_[Model::sources] = {INT64_MIN, INT64_MIN, INT64_MIN};
};

/// Goes through all sequences of this length after a prefix, each from the beginning.
std::size_t explore(Mode mode, const std::vector<Event>& prefix, std::size_t length) {
  std::vector<Event> sequence = prefix;
  sequence.resize(prefix.size() + length, Event{});
  std::size_t sequences = 0;
  for (;;) {
    Pair pair(mode);
    std::size_t position = 0;
    while (position < sequence.size() && pair.apply(sequence[position])) {
      ++position;
      pair.compare();
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << sequence << "at " << position << ", mode " << static_cast<int>(mode);
        return sequences;
      }
    }
    ++sequences;
    if (position < prefix.size()) {
      ADD_FAILURE() << "the prefix cannot happen";
      return 0;
    }
    // what cannot happen, cannot happen whatever follows
    std::size_t last = std::min(position, sequence.size() - 1);
    std::fill(sequence.begin() + static_cast<std::ptrdiff_t>(last) + 1, sequence.end(), Event{});
    for (; sequence[last] == Event::stop_1; --last) {
      if (last == prefix.size()) return sequences;
      sequence[last] = Event{};
    }
    sequence[last] = static_cast<Event>(static_cast<int>(sequence[last]) + 1);
  }
}

}  // namespace

TEST(Coincidences, OfEveryKindFromTheBeginning) {
  for (const Mode mode : {Mode::plain, Mode::paper, Mode::carry}) {
    EXPECT_GT(explore(mode, {}, 6), 100'000U);
  }
}

TEST(Coincidences, AroundAJobThatRuns) {
  const std::vector<Event> running = {Event::edge, Event::raise_1, Event::next,
                                      Event::next, Event::execute, Event::execute};
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    EXPECT_GT(explore(mode, running, 5), 50'000U);
  }
}

TEST(Coincidences, AroundAFullQueue) {
  const std::vector<Event> full = {Event::edge,    Event::raise_1, Event::raise_2,
                                   Event::raise_1, Event::raise_2, Event::next};
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    EXPECT_GT(explore(mode, full, 5), 50'000U);
  }
}

TEST(Coincidences, AroundTheEndOfAnOwnSlotWithIrqsPending) {
  const std::vector<Event> pending = {Event::edge,    Event::raise_0, Event::next,   Event::execute,
                                      Event::execute, Event::raise_0, Event::raise_1};
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    EXPECT_GT(explore(mode, pending, 5), 50'000U);
  }
}

TEST(Coincidences, AroundJobsOfBothPartitions) {
  // partition 0's direct IRQ and partition 1's waiting one meet at the edge; 0's job runs
  const std::vector<Event> both = {Event::edge, Event::raise_1, Event::raise_0, Event::next,
                                   Event::edge, Event::next,    Event::next};
  for (const Mode mode : {Mode::paper, Mode::carry}) {
    EXPECT_GT(explore(mode, both, 5), 50'000U);
  }
}

TEST(Coincidences, InLongRandomSequences) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 300; ++round) {
    for (const Mode mode : {Mode::plain, Mode::paper, Mode::carry}) {
      Pair pair(mode);
      std::vector<Event> sequence;
      const std::uint64_t calm = 1 + (random() % 4);  // else queues are nearly always full
      while (sequence.size() < 500) {
        auto event = static_cast<Event>(random() % 11);
        if (random() % 4 < calm && event != Event::edge) {
          event = random() % 2 == 0 ? Event::next : Event::finish;
        }
        if (event == Event::stop_1 && random() % 20 != 0) {
          event = Event::execute;
        }
        sequence.push_back(event);
        pair.apply(event);
        pair.compare();
        ASSERT_FALSE(HasFailure()) << sequence << "mode " << static_cast<int>(mode);
      }
    }
  }
}
