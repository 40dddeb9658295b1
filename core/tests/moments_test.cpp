// SPDX-License-Identifier: Apache-2.0
#include "latenz/moments.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "random_latency.hpp"

using latenz::Moments;

namespace {

Moments of(const std::vector<std::int64_t>& values) {
  Moments moments;
  for (const auto value : values) {
    moments.add(value);
  }
  return moments;
}

void expect_same(const Moments& a, const Moments& b) {
  EXPECT_EQ(a.n(), b.n());
  EXPECT_EQ(a.min(), b.min());
  EXPECT_EQ(a.max(), b.max());
  EXPECT_EQ(a.sum(), b.sum());
  EXPECT_EQ(a.sum_of_squares(), b.sum_of_squares());
}

}  // namespace

TEST(Moments, KnownValues) {
  const Moments moments = of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(moments.mean(), 5.0);
  EXPECT_DOUBLE_EQ(moments.variance(), 32.0 / 7.0);
  EXPECT_EQ(moments.jitter(), 4.0);
}

TEST(Moments, KeepsSmallDifferencesOfHugeValues) {
  const std::int64_t huge = 0x4000'0000'0000'0000;
  const Moments moments = of({huge, huge + 1, huge + 3});
  EXPECT_DOUBLE_EQ(moments.jitter(), 5.0 / 3.0);
  EXPECT_DOUBLE_EQ(moments.variance(), 7.0 / 3.0);
}

TEST(Moments, ReachesBothEndsOfTheRange) {
  const Moments moments = of({INT64_MIN, INT64_MAX});
  EXPECT_EQ(moments.mean(), -0.5);
  EXPECT_EQ(moments.variance(), std::ldexp(1.0, 127));
  Moments most;  // the largest sums: 2^62 samples of -2^63
  most.add(INT64_MIN, std::uint64_t{1} << 62U);
  EXPECT_EQ(most.mean(), -std::ldexp(1.0, 63));
  EXPECT_EQ(most.variance(), 0.0);
}

TEST(Moments, PartsMergedEqualTheWhole) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    Moments whole;
    Moments first;
    Moments second;
    for (int i = 0; i < 50; ++i) {
      const std::int64_t value = random_latency(random);
      const std::uint64_t times = random() % 4;
      whole.add(value, times);
      (random() % 2 != 0U ? first : second).add(value, times);
    }
    second.merge(first);
    expect_same(whole, second);
  }
}

TEST(Moments, TimesIsTheSameAsRepeating) {
  Moments once;
  once.add(-7, 3);
  once.add(5, 0);
  expect_same(once, of({-7, -7, -7}));
}
