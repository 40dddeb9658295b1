// SPDX-License-Identifier: Apache-2.0
#include "latenz/limiter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "latenz/event_model.hpp"
#include "random_system.hpp"

using latenz::Count;
using latenz::Duration;
using latenz::EventModel;
using latenz::Instant;
using latenz::Limiter;
using latenz::Periodic;

namespace {

/// When one more event keeps the model's distances to all before, by the definition.
Instant earliest_by_definition(const EventModel& model, const std::vector<Instant>& times) {
  Instant earliest = Instant::long_ago();
  for (std::size_t i = 0; i < times.size(); ++i) {
    earliest = std::max(earliest, times[i] + model.delta(static_cast<Count>(times.size() - i + 1)));
  }
  return earliest;
}

/// Events as early as permitted or later, at random.
void expect_exact(const EventModel& model, SystemGenerator& generator) {
  auto limiter = model.limiter();
  std::vector<Instant> times;
  Instant next(generator.up_to(100));
  for (int n = 0; n < 100; ++n) {
    if (!times.empty()) {
      const Instant earliest = earliest_by_definition(model, times);
      ASSERT_EQ(std::max(limiter.earliest(), times.back()), std::max(earliest, times.back()));
      next = std::max(times.back(), earliest);
      ASSERT_EQ(limiter.permits(next), true);
      ASSERT_EQ(earliest > times.back() && limiter.permits(earliest - Duration(1)), false);
    }
    next += Duration(generator.one_in(2) ? 0 : generator.up_to(400));
    limiter.record(next);
    times.push_back(next);
  }
}

}  // namespace

TEST(Limiter, PermitsExactlyTheStreamsOfItsModel) {
  SystemGenerator generator(1);
  for (int round = 0; round < 500; ++round) {
    const latenz::System system = generator.system();
    for (const latenz::Source& source : system.sources()) {
      ASSERT_NO_FATAL_FAILURE(expect_exact(source.arrival, generator));
    }
  }
}

TEST(Limiter, CountsJitterOverAnyNumberOfEvents) {
  // 5 may come at once, and then one in every 10
  auto limiter = Periodic(Duration(10), Duration(40), Duration()).limiter();
  for (int n = 0; n < 5; ++n) {
    ASSERT_TRUE(limiter.permits(Instant(100)));
    limiter.record(Instant(100));
  }
  for (std::int64_t n = 1; n < 1000; ++n) {
    ASSERT_EQ(limiter.earliest(), Instant(100 + (10 * n)));
    limiter.record(limiter.earliest());
  }
}

TEST(Limiter, WithoutAModelPermitsEverything) {
  auto limiter = EventModel(latenz::Unlimited()).limiter();
  for (int n = 0; n < 10; ++n) {
    ASSERT_TRUE(limiter.permits(Instant(7)));
    limiter.record(Instant(7));
  }
}

/// Due beyond 64 bits, but by its jitter early enough to be told: a storm was once let through.
TEST(Limiter, JitterOfCenturiesPermitsNoStorm) {
  constexpr std::int64_t period = INT64_MAX / 2;
  const EventModel model = Periodic(Duration(period), Duration(2 * period - 1'000'000), {});
  auto limiter = model.limiter();
  for (int n = 0; n < 2; ++n) {
    ASSERT_TRUE(limiter.permits(Instant(1000)));
    limiter.record(Instant(1000));
  }
  EXPECT_EQ(model.eta(Duration(1'000'000)), 2);
  EXPECT_EQ(limiter.earliest(), Instant(1'001'000));
}

TEST(Limiter, TimesNearTheEndDoNotWrap) {
  Limiter<1> limiter({}, Duration(INT64_MAX), Duration(5));
  ASSERT_TRUE(limiter.permits(Instant(0)));
  limiter.record(Instant(10));
  EXPECT_FALSE(limiter.permits(Instant(INT64_MAX - 6)));
}
