// SPDX-License-Identifier: Apache-2.0
#include "latenz/learner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "latenz/monitor.hpp"
#include "random_distances.hpp"

using latenz::DistanceLearner;
using latenz::DistanceMonitor;
using latenz::Duration;
using latenz::Instant;

namespace {

/// The least span of every i + 2 consecutive events, by looking at all of them.
Distances least_spans(const std::vector<Instant>& events, std::size_t capacity) {
  Distances least;
  for (std::size_t step = 1; step <= capacity && step < events.size(); ++step) {
    least.push_back(Duration::unbounded());
    for (std::size_t i = 0; i + step < events.size(); ++i) {
      least.back() = std::min(least.back(), events[i + step] - events[i]);
    }
  }
  return least;
}

template <std::size_t Capacity>
Distances learned(const std::vector<Instant>& events) {
  DistanceLearner<Capacity> learner;
  for (const Instant event : events) {
    learner.observe(event);
  }
  return {learner.observed().begin(), learner.observed().end()};
}

std::vector<Instant> random_events(std::mt19937_64& random, std::size_t n) {
  std::vector<Instant> events;
  Instant now(static_cast<std::int64_t>(random()));
  for (std::size_t i = 0; i < n; ++i) {
    events.push_back(now);
    now += Duration(static_cast<std::int64_t>(random() % 1000));
  }
  return events;
}

/// Algorithm 1 as printed: its trace buffer starts with zeros.
Distances as_printed(const std::vector<Instant>& events, std::size_t length) {
  std::vector<Instant> trace_buffer(length);
  Distances distances(length, Duration::unbounded());
  for (const Instant event : events) {
    for (std::size_t i = 0; i < length; ++i) {
      distances[i] = std::min(distances[i], event - trace_buffer[i]);
    }
    trace_buffer.insert(trace_buffer.begin(), event);
    trace_buffer.pop_back();
  }
  return distances;
}

}  // namespace

TEST(Learner, FindsTheLeastSpansOfAllWindows) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<Instant> events;
    for (const Instant event : random_events(random, 120)) {
      events.push_back(event);
      if (events.size() < 10 || events.size() % 30 == 0) {
        ASSERT_EQ(learned<1>(events), least_spans(events, 1));
        ASSERT_EQ(learned<2>(events), least_spans(events, 2));
        ASSERT_EQ(learned<5>(events), least_spans(events, 5));
        ASSERT_EQ(learned<64>(events), least_spans(events, 64));
      }
    }
  }
}

TEST(Learner, KnowsNoDistanceBeforeTwoEventsHaveCome) {
  DistanceLearner<3> learner;
  EXPECT_TRUE(learner.observed().empty());
  learner.observe(Instant(100));
  EXPECT_TRUE(learner.observed().empty());
  learner.observe(Instant(4800));
  EXPECT_EQ(learner.observed().size(), 1U);
  learner.reset();
  EXPECT_TRUE(learner.observed().empty());
}

TEST(Learner, NeverMeasuresAgainstTimeZeroAsThePrintedAlgorithmDoes) {
  const std::vector<Instant> events = {Instant(100),    Instant(4800),   Instant(10'000),
                                       Instant(15'000), Instant(20'000), Instant(25'000)};
  EXPECT_EQ(learned<5>(events), (Distances{Duration(4700), Duration(9900), Duration(14'900),
                                           Duration(19'900), Duration(24'900)}));
  EXPECT_EQ(as_printed(events, 5), Distances(5, Duration(100)));
}

TEST(Learner, ResultDoesNotDependOnTheClocksOrigin) {
  std::mt19937_64 random(2);
  const std::vector<Instant> events = random_events(random, 50);
  std::vector<Instant> shifted(events.size());
  std::ranges::transform(events, shifted.begin(),
                         [&](Instant event) { return Instant() + (event - events.front()); });
  EXPECT_EQ(learned<5>(events), learned<5>(shifted));
}

TEST(Learner, MonitorOfWhatWasLearnedPermitsAllOfItAgain) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Instant> events = random_events(random, 100);
    const Distances distances = learned<5>(events);
    DistanceMonitor<5> monitor(distances);
    for (const Instant event : events) {
      ASSERT_TRUE(monitor.accept(event));
    }
  }
}
