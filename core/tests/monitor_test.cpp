// SPDX-License-Identifier: Apache-2.0
#include "latenz/monitor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "latenz/event_model.hpp"
#include "random_distances.hpp"

using latenz::DistanceMonitor;
using latenz::DistanceVector;
using latenz::Duration;
using latenz::Instant;

namespace {

/// The monitor as textbooks have it: keeps the stamps of all accepted events and compares the
/// distance to each of the last l.
class TextbookMonitor {
 public:
  explicit TextbookMonitor(Distances distances) : distances_(std::move(distances)) {}

  [[nodiscard]] bool permits(Instant at) const {
    for (std::size_t i = 0; i < std::min(distances_.size(), accepted_.size()); ++i) {
      if (at - accepted_[accepted_.size() - 1 - i] < distances_[i]) {
        return false;
      }
    }
    return true;
  }

  bool accept(Instant at) {
    const bool accepted = permits(at);
    if (accepted) {
      accepted_.push_back(at);
    }
    return accepted;
  }

  [[nodiscard]] const std::vector<Instant>& accepted() const { return accepted_; }

 private:
  Distances distances_;
  std::vector<Instant> accepted_;
};

/// Gaps around a vector's own: many zeros, some exact distances, some long pauses.
Duration random_gap(std::mt19937_64& random, const Distances& distances) {
  const std::uint64_t mean =
      (static_cast<std::uint64_t>(distances.back().ns()) / distances.size()) + 1;
  switch (random() % 6) {
    case 0:
      return {};
    case 1:
      return distances[random() % distances.size()];
    case 2:
      return Duration(static_cast<std::int64_t>(random() % (8 * mean)));
    default:
      return Duration(static_cast<std::int64_t>(random() % (2 * mean)));
  }
}

template <std::size_t Capacity>
void compare_with_textbook(std::mt19937_64& random, std::size_t length, std::uint64_t most_step) {
  const Distances distances = random_vector(random, length, most_step);
  DistanceMonitor<Capacity> monitor(distances);
  TextbookMonitor textbook(distances);
  Instant now(static_cast<std::int64_t>(random() % 1000) - 500);
  for (int event = 0; event < 200; ++event) {
    const Instant earliest = std::max(now, monitor.earliest());
    ASSERT_TRUE(textbook.permits(earliest));
    ASSERT_TRUE(earliest == now || !textbook.permits(earliest + Duration(-1)));
    ASSERT_EQ(monitor.permits(now), textbook.permits(now));
    ASSERT_EQ(monitor.accept(now), textbook.accept(now));
    now += random_gap(random, distances);
  }
  const DistanceVector model(distances);
  const auto& accepted = textbook.accepted();
  for (std::size_t first = 0; first < accepted.size(); ++first) {
    for (std::size_t last = first; last < accepted.size(); ++last) {
      const auto q = static_cast<latenz::Count>(last - first + 1);
      ASSERT_GE(accepted[last] - accepted[first], model.delta(q)) << q << " events";
    }
  }
}

}  // namespace

TEST(Monitor, DecidesAsTheTextbookAndItsEventsKeepTheClosedDistances) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    compare_with_textbook<1>(random, 1, 10);
    compare_with_textbook<2>(random, 2, 10);
    compare_with_textbook<5>(random, 1 + (random() % 5), 10);
    compare_with_textbook<5>(random, 5, 1'000'000'000);
    compare_with_textbook<64>(random, 1 + (random() % 64), 10);
  }
}

TEST(Monitor, EventsOfferedAsEarlyAsPermittedComeAsDenselyAsTheModelSays) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    const Distances distances = random_vector(random, 1 + (random() % 6), 20);
    DistanceMonitor<6> monitor(distances);
    const DistanceVector model(distances);
    for (latenz::Count q = 1; q <= 100; ++q) {
      const Instant at = q == 1 ? Instant() : monitor.earliest();
      ASSERT_EQ(at - Instant(), model.delta(q));
      ASSERT_TRUE(monitor.accept(at));
    }
  }
}

TEST(Monitor, FirstEventIsPermittedWheneverItComesAndNeverMeasuredAgainstTimeZero) {
  const Distances distances = {Duration(1000), Duration(5000)};
  for (const std::int64_t first : {INT64_MIN, INT64_C(-1), INT64_C(0), INT64_C(1), INT64_C(999)}) {
    DistanceMonitor<2> monitor(distances);
    EXPECT_TRUE(monitor.accept(Instant(first)));
    EXPECT_FALSE(monitor.accept(Instant(first + 999)));
    EXPECT_TRUE(monitor.accept(Instant(first + 1000)));
    EXPECT_FALSE(monitor.accept(Instant(first + 4999)));
    EXPECT_TRUE(monitor.accept(Instant(first + 5000)));
  }
}

TEST(Monitor, DeniedEventsLeaveNoTrace) {
  const Distances distances = {Duration(100)};
  DistanceMonitor<1> monitor(distances);
  ASSERT_TRUE(monitor.accept(Instant(0)));
  for (int at = 1; at < 100; ++at) {
    ASSERT_FALSE(monitor.accept(Instant(at)));
  }
  EXPECT_TRUE(monitor.accept(Instant(100)));
}

TEST(Monitor, EndOfTimeIsNotWrappedAround) {
  const Distances distances = {Duration(100), Duration::unbounded()};
  DistanceMonitor<2> monitor(distances);
  ASSERT_TRUE(monitor.accept(Instant(INT64_MAX - 150)));
  EXPECT_FALSE(monitor.permits(Instant(INT64_MAX - 51)));
  ASSERT_TRUE(monitor.accept(Instant(INT64_MAX - 50)));
  EXPECT_FALSE(monitor.permits(Instant(INT64_MAX - 1)));
  EXPECT_EQ(monitor.earliest(), Instant::never());
}

TEST(Monitor, ForgetsEverythingOnReset) {
  const Distances distances = {Duration(100)};
  DistanceMonitor<1> monitor(distances);
  ASSERT_TRUE(monitor.accept(Instant(0)));
  monitor.reset();
  EXPECT_TRUE(monitor.accept(Instant(1)));
}

TEST(Monitor, KeepsTheFirstDistancesOfAVectorBeyondItsCapacity) {
  const Distances distances = {Duration(1), Duration(50), Duration(900)};
  const DistanceMonitor<2> monitor(distances);
  ASSERT_EQ(monitor.distances().size(), 2U);
  EXPECT_TRUE(std::ranges::equal(monitor.distances(), std::array{Duration(1), Duration(50)}));
}

TEST(Monitor, WithoutDistancesPermitsEverything) {
  DistanceMonitor<3> monitor{Distances()};
  EXPECT_TRUE(monitor.accept(Instant(5)));
  EXPECT_TRUE(monitor.accept(Instant(5)));
}
