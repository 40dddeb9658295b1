// SPDX-License-Identifier: Apache-2.0
#include "latenz/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <ranges>
#include <vector>

#include "latenz/event_model.hpp"
#include "random_distances.hpp"

using latenz::Arrivals;
using latenz::Duration;
using latenz::ExponentialArrivals;
using latenz::Instant;
using latenz::ListedArrivals;
using latenz::PeriodicArrivals;
using latenz::Random;
using latenz::SporadicArrivals;

namespace {

template <typename Stream>
std::vector<std::int64_t> first(Stream stream, std::size_t n) {
  std::vector<std::int64_t> times(n);
  std::ranges::generate(times, [&] { return stream.next().ns(); });
  return times;
}

/// Any q consecutive events span at least delta(q).
void expect_model(const std::vector<std::int64_t>& times, const latenz::EventModel& model) {
  for (std::size_t start = 0; start < times.size(); ++start) {
    for (std::size_t end = start; end < times.size(); ++end) {
      const auto q = static_cast<latenz::Count>(end - start + 1);
      ASSERT_GE(times[end] - times[start], model.delta(q).ns()) << q << " events from " << start;
    }
  }
}

/// The number before the mixing of splitmix64, so that tests can choose what `next` returns.
std::uint64_t state_before(std::uint64_t number) {
  const auto divided_by = [](std::uint64_t product, std::uint64_t odd) {
    std::uint64_t inverse = odd;  // Newton's iteration doubles the correct bits
    for (int step = 0; step < 6; ++step) {
      inverse *= 2 - (odd * inverse);
    }
    return product * inverse;
  };
  number ^= (number >> 31U) ^ (number >> 62U);
  number = divided_by(number, 0x94D0'49BB'1331'11EBU);
  number ^= (number >> 27U) ^ (number >> 54U);
  number = divided_by(number, 0xBF58'476D'1CE4'E5B9U);
  number ^= (number >> 30U) ^ (number >> 60U);
  return number - 0x9E37'79B9'7F4A'7C15U;
}

/// -ln(number / 2^64) as the exponential distribution uses it, with 15 decimals.
double minus_log(std::uint64_t number) {
  return static_cast<double>(
             Random(state_before(number)).exponential(Duration(100'000'000'000'000'000)).ns()) *
         1e-17;
}

}  // namespace

TEST(Random, IsSplitmix64) {
  // the numbers that its authors' program prints for these seeds
  Random zero(0);
  EXPECT_EQ(zero.next(), 0xE220'A839'7B1D'CDAFU);
  EXPECT_EQ(zero.next(), 0x6E78'9E6A'A1B9'65F4U);
  Random other(1234567);
  EXPECT_EQ(other.next(), 6457827717110365317U);
  EXPECT_EQ(other.next(), 3203168211198807973U);
  EXPECT_EQ(other.next(), 9817491932198370423U);
}

TEST(Random, LogarithmIsAccurateForEveryMagnitude) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers = {1, 3, UINT64_MAX, UINT64_C(0xB504'F333'F9DE'6485),
                                        UINT64_C(0xB504'F333'F9DE'6483)};  // around sqrt(1/2)
  for (int i = 0; i < 200'000; ++i) {
    numbers.push_back((random() >> (random() % 64)) | 1U);
  }
  for (const std::uint64_t number : numbers) {
    const double expected = -std::log(std::ldexp(static_cast<double>(number), -64));
    ASSERT_NEAR(minus_log(number), expected, 1e-12) << number;
  }
}

TEST(Random, ExponentialTimesHaveTheirMeanAndVarianceAndStayInRange) {
  Random random(2);
  constexpr int n = 1'000'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const auto time = static_cast<double>(random.exponential(Duration(1'000'000)).ns()) * 1e-6;
    sum += time;
    squares += time * time;
  }
  EXPECT_NEAR(sum / n, 1.0, 5.0 / std::sqrt(n));  // standard error of the mean: 1 / sqrt(n)
  EXPECT_NEAR(squares / n, 2.0, 5 * std::sqrt(20.0 / n));
  EXPECT_EQ(Random(state_before(1)).exponential(Duration::unbounded()).ns(), INT64_C(1) << 62);
}

TEST(Random, WholeNumbersReachBothEndsEvenly) {
  Random random(3);
  std::vector<int> counts(7);
  constexpr int n = 700'000;
  for (int i = 0; i < n; ++i) {
    ++counts.at(static_cast<std::size_t>(random.up_to(6)));
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, n / 7.0, 5 * std::sqrt(n / 7.0));
  }
  EXPECT_EQ(random.up_to(0), 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GE(random.up_to(INT64_MAX), 0);
  }
}

TEST(Arrivals, OfASeedAreTheSameOnEveryMachine) {
  const Distances distances = {Duration(1000), Duration(5000)};
  EXPECT_EQ(first(PeriodicArrivals(Duration(1000), Duration(300), Duration(), 7), 4),
            (std::vector<std::int64_t>{394, 1660, 2564, 3525}));
  EXPECT_EQ(first(ExponentialArrivals(Duration(1'000'000), Duration(1000), 7), 4),
            (std::vector<std::int64_t>{942045, 5029118, 5133633, 5673320}));
  EXPECT_EQ(first(SporadicArrivals(distances, 7), 6),
            (std::vector<std::int64_t>{2355, 3355, 7355, 10337, 14253, 15337}));
  EXPECT_NE(first(ExponentialArrivals(Duration(1'000'000), Duration(1000), 8), 4),
            first(ExponentialArrivals(Duration(1'000'000), Duration(1000), 7), 4));
}

TEST(Arrivals, PeriodicOnesKeepTheirModelAndLieInTheirWindows) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto period = static_cast<std::int64_t>(1 + (random() % 1000));
    const auto jitter = static_cast<std::int64_t>(random() % 4000);
    const auto distance =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(period + 1));
    const auto times = first(
        PeriodicArrivals(Duration(period), Duration(jitter), Duration(distance), random()), 150);
    expect_model(times, latenz::Periodic(Duration(period), Duration(jitter), Duration(distance)));
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::int64_t due = static_cast<std::int64_t>(i) * period;
      ASSERT_GE(times[i], due);
      ASSERT_LT(times[i], due + period + jitter);
    }
  }
}

TEST(Arrivals, SporadicOnesKeepTheirModelAndComeAsEarlyAsAllowedOften) {
  std::mt19937_64 random(5);
  int earliest = 0;
  for (int round = 0; round < 200; ++round) {
    const Distances distances = random_vector(random, 1 + (random() % 8), 1000);
    const latenz::DistanceVector model(distances);
    const auto times = first(SporadicArrivals(distances, random()), 150);
    expect_model(times, model);
    earliest += static_cast<int>(std::ranges::count_if(
        std::views::iota(std::size_t{1}, times.size()),
        [&](std::size_t i) { return times[i] - times[i - 1] == model.delta(2).ns(); }));
  }
  EXPECT_GT(earliest, 3000);
}

TEST(Arrivals, ExponentialGapsHaveTheirMeanAndNeverLessThanTheMinimum) {
  constexpr std::size_t n = 200'000;
  const auto times = first(ExponentialArrivals(Duration(1'000'000), Duration(), 6), n);
  EXPECT_NEAR(static_cast<double>(times.back()) / (1e6 * n), 1.0, 5 / std::sqrt(n));
  const auto spread = first(ExponentialArrivals(Duration(1'000'000), Duration(1'000'000), 6), n);
  std::size_t at_minimum = 0;
  for (std::size_t i = 1; i < n; ++i) {
    ASSERT_GE(spread[i] - spread[i - 1], 1'000'000);
    at_minimum += spread[i] - spread[i - 1] == 1'000'000 ? 1 : 0;
  }
  const double share = 1 - std::exp(-1.0);  // shorter than the mean before they were lengthened
  EXPECT_NEAR(static_cast<double>(at_minimum) / n, share, 5 * std::sqrt(share / n));
}

TEST(Arrivals, AreTheStreamsOwnTimesAcrossBatchesAndNeverAfterTheLast) {
  std::vector<std::int64_t> times(1000);
  std::ranges::generate(times, [at = INT64_C(0)]() mutable { return at += 3; });
  Arrivals listed{ListedArrivals(times)};
  for (const std::int64_t time : times) {
    ASSERT_EQ(listed.at(), Instant(time));
    listed.advance();
  }
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(listed.at(), Instant::never());
    listed.advance();
  }
  const ExponentialArrivals stream(Duration(1000), Duration(), 9);
  Arrivals batched{stream};
  for (const std::int64_t time : first(stream, 1000)) {
    ASSERT_EQ(batched.at(), Instant(time));
    batched.advance();
  }
}
