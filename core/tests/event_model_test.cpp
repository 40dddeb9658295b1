// SPDX-License-Identifier: Apache-2.0
#include "latenz/event_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "random_distances.hpp"

using latenz::Count;
using latenz::DistanceVector;
using latenz::Duration;
using latenz::endless;
using latenz::EventModel;
using latenz::Periodic;
using latenz::Unlimited;

namespace {

/// delta(q) for q = 0 .. most by the definition: the largest sum over all cuts of the gaps between
/// q events into parts that the vector knows.
Distances deltas_by_definition(const Distances& vector, std::size_t most) {
  Distances delta(most + 1);
  for (std::size_t q = 2; q <= most; ++q) {
    for (std::size_t part = 1; part <= std::min(q - 1, vector.size()); ++part) {
      delta[q] = std::max(delta[q], delta[q - part] + vector[part - 1]);
    }
  }
  return delta;
}

void expect_definition(const Distances& vector, std::size_t most) {
  const DistanceVector model(vector);
  const Distances expected = deltas_by_definition(vector, most);
  for (std::size_t q = 0; q <= most; ++q) {
    ASSERT_EQ(model.delta(static_cast<Count>(q)), expected[q]) << "q = " << q;
  }
}

/// The laws at a number of events and the windows around its distance.
void expect_laws_at(const EventModel& model, Count q, Count other) {
  const Duration delta = model.delta(q);
  ASSERT_LE(delta, model.delta(q + 1));
  ASSERT_GE(model.delta(q + other - 1), delta + model.delta(other)) << q << " and " << other;
  for (const std::int64_t step : {-1, 0, 1}) {
    const Duration window = delta + Duration(step);
    ASSERT_EQ(delta < window, model.eta(window) >= q) << "q = " << q << ", step " << step;
    ASSERT_LE(model.eta(window), model.eta(window + Duration(1)));
  }
}

void expect_laws(const EventModel& model, Count most) {
  ASSERT_EQ(model.delta(0), Duration());
  ASSERT_EQ(model.delta(1), Duration());
  ASSERT_EQ(model.eta(Duration()), 0);
  ASSERT_EQ(model.eta(Duration(-1)), 0);
  ASSERT_EQ(model.eta(Duration::unbounded()), endless);
  for (Count q = 1; q <= most; ++q) {
    for (Count other = 1; other <= q; ++other) {
      expect_laws_at(model, q, other);
    }
  }
}

std::int64_t up_to(std::mt19937_64& random, std::int64_t most) {
  return static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(most) + 1));
}

Periodic random_periodic(std::mt19937_64& random) {
  const auto period = static_cast<std::int64_t>((random() >> (24 + (random() % 39))) + 1);
  const std::int64_t jitter = up_to(random, period * up_to(random, 5));
  return {Duration(period), Duration(jitter), Duration(up_to(random, period))};
}

}  // namespace

TEST(EventModel, LawsHoldForEverySmallPeriodicModel) {
  for (std::int64_t period = 1; period <= 6; ++period) {
    for (std::int64_t jitter = 0; jitter <= 15; ++jitter) {
      for (std::int64_t distance = 0; distance <= period; ++distance) {
        expect_laws(Periodic(Duration(period), Duration(jitter), Duration(distance)), 15);
      }
    }
  }
}

TEST(EventModel, LawsHoldForEverySmallVector) {
  for (std::size_t length = 1; length <= 4; ++length) {
    for (const Distances& vector : every_vector(length, 5)) {
      if (vector.back() > Duration()) {  // else nothing limits the events
        expect_laws(DistanceVector(vector), 15);
      }
    }
  }
}

TEST(EventModel, LawsHoldForLargeModels) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const Count q = 1 + up_to(random, (1 << (random() % 20)));
    const Count other = 1 + up_to(random, (1 << (random() % 20)));
    expect_laws_at(random_periodic(random), q, other);
    if (round % 10 == 0) {
      Distances vector = random_vector(random, 1 + (random() % 64), 1U << (random() % 32));
      vector.back() += Duration(1);
      expect_laws_at(DistanceVector(vector), q, other);
    }
  }
}

TEST(EventModel, WindowsAreHalfOpen) {
  const Periodic model(Duration(100), Duration(), Duration());
  EXPECT_EQ(model.eta(Duration(1)), 1);
  EXPECT_EQ(model.eta(Duration(100)), 1);
  EXPECT_EQ(model.eta(Duration(101)), 2);
  EXPECT_EQ(model.delta(3), Duration(200));
}

TEST(EventModel, JitterMakesABurstThatTheMinimumDistanceSpreads) {
  const Periodic burst(Duration(100), Duration(250), Duration());
  EXPECT_EQ(burst.eta(Duration(1)), 3);
  EXPECT_EQ(burst.delta(4), Duration(50));
  const Periodic spread(Duration(100), Duration(250), Duration(30));
  EXPECT_EQ(spread.eta(Duration(1)), 1);
  EXPECT_EQ(spread.eta(Duration(61)), 3);
  EXPECT_EQ(spread.delta(4), Duration(90));
  EXPECT_EQ(spread.delta(5), Duration(150));
}

TEST(DistanceVector, IsTheClosureByDefinitionForEverySmallVector) {
  for (std::size_t length = 1; length <= 6; ++length) {
    for (const Distances& vector : every_vector(length, length < 5 ? 9 : 6)) {
      expect_definition(vector, 12 * length);
    }
  }
}

TEST(DistanceVector, IsTheClosureByDefinitionUpToTheLongest) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    expect_definition(random_vector(random, 1 + (random() % 12), 100), 600);
  }
  for (int round = 0; round < 10; ++round) {
    expect_definition(random_vector(random, latenz::longest_distance_vector, 1000), 10'000);
  }
}

TEST(DistanceVector, IsPeriodicFromTheDocumentedNumberOfEventsOn) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    const Distances vector = random_vector(random, 1 + (random() % 10), 6);
    const DistanceVector model(vector);
    const auto m = static_cast<std::size_t>(model.rate_events());
    const Distances delta = deltas_by_definition(vector, 300);
    for (std::size_t q = ((m - 1) * vector.size()) + 1; q + m <= 300; ++q) {
      ASSERT_EQ(delta[q + m], delta[q] + model.rate_window());
    }
  }
}

TEST(DistanceVector, ClosesWhatPeersLeaveOpen) {
  // a tool that extends this vector by its first entry says 14; by its best cut, 10
  const Distances vector = {Duration(33), Duration(297), Duration(330), Duration(594)};
  EXPECT_EQ(DistanceVector(vector).eta(Duration(1234)), 10);
  const Distances short_vector = {Duration(278), Duration(304)};
  EXPECT_EQ(DistanceVector(short_vector).eta(Duration(500)), 2);
}

TEST(DistanceVector, OfZerosLimitsNothing) {
  const Distances zeros(3);
  const DistanceVector model(zeros);
  EXPECT_EQ(model.delta(1'000'000), Duration());
  EXPECT_EQ(model.eta(Duration(1)), endless);
  EXPECT_EQ(model.eta(Duration()), 0);
}

TEST(EventModel, EndOf64BitsNeitherWrapsNorMissesAnEvent) {
  const Duration half(INT64_MAX / 2);
  const Distances vector = {half, half + half};
  const EventModel models[] = {DistanceVector(vector), Periodic(half, Duration(), Duration()),
                               Periodic(half, half, half)};
  for (const EventModel& model : models) {
    for (const Count q : {Count{4}, Count{1} << 40, endless - 1, endless}) {
      EXPECT_GE(model.delta(q), half) << q;
    }
    EXPECT_EQ(model.eta(half + Duration(1)), 2);
    EXPECT_GE(model.eta(Duration::unbounded() - Duration(1)), 2);
  }
  // window + jitter does not fit: what cannot be counted is endless, never too few
  const Periodic late(Duration(INT64_C(1) << 62), Duration(INT64_MAX - 1), Duration());
  EXPECT_GE(late.eta(Duration(1'000'000'000)), 3);
}

TEST(EventModel, OfAnUnknownSourceAllowsEverything) {
  const EventModel model = Unlimited();
  EXPECT_EQ(model.delta(endless), Duration());
  EXPECT_EQ(model.eta(Duration()), 0);
  EXPECT_EQ(model.eta(Duration(1)), endless);
  EXPECT_EQ(model.rate_window(), Duration());
}

TEST(EventModel, OutnumbersNoMonitorThatLetsMoreComeInAnyWindow) {
  std::mt19937_64 random(5);
  int outnumbered = 0;
  for (int round = 0; round < 3000; ++round) {
    const DistanceVector monitor(random_vector(random, 1 + (random() % 4), 30));
    const Duration period(1 + up_to(random, 20));
    const EventModel models[] = {
        DistanceVector(random_vector(random, 1 + (random() % 4), 20)),
        Periodic(period, Duration(up_to(random, 40)), Duration(up_to(random, period.ns())))};
    for (const EventModel& model : models) {
      if (!model.outnumbers(monitor)) continue;
      ++outnumbered;
      for (std::int64_t window = 0; window < 300; ++window) {
        ASSERT_LE(monitor.eta(Duration(window)), model.eta(Duration(window)));
      }
    }
  }
  EXPECT_GT(outnumbered, 500);
  EXPECT_LT(outnumbered, 5500);
  EXPECT_TRUE(EventModel(Unlimited()).outnumbers(DistanceVector(random_vector(random, 2, 9))));
}

TEST(EventModel, ConformsExactlyIfNoNumberOfEventsComesCloser) {
  std::mt19937_64 random(4);
  int conforming = 0;
  for (int round = 0; round < 3000; ++round) {
    const DistanceVector monitor(random_vector(random, 1 + (random() % 4), 8));
    const EventModel models[] = {
        DistanceVector(random_vector(random, 1 + (random() % 4), 20)),
        Periodic(Duration(1 + up_to(random, 20)), Duration(up_to(random, 20)), Duration())};
    for (const EventModel& model : models) {
      bool expected = true;
      for (Count q = 2; q < 100; ++q) {
        expected = expected && model.delta(q) >= monitor.delta(q);
      }
      ASSERT_EQ(model.conforms_to(monitor), expected);
      conforming += expected ? 1 : 0;
    }
  }
  EXPECT_GT(conforming, 500);
  EXPECT_LT(conforming, 5500);
}
