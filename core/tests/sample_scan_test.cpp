// SPDX-License-Identifier: Apache-2.0
#include "latenz/sample_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "latenz/rank_refinement.hpp"
#include "random_latency.hpp"

using latenz::RankInterval;
using latenz::RankRefinement;
using latenz::SampleScan;

namespace {

/// Memory of a scan with a window of 64 cells.
struct Memory {
  std::vector<std::uint64_t> window = std::vector<std::uint64_t>(64);
  std::vector<std::uint64_t> below = std::vector<std::uint64_t>(SampleScan::outside.cells());
  std::vector<std::uint64_t> above = std::vector<std::uint64_t>(SampleScan::outside.cells());
  std::vector<std::int64_t> spill = std::vector<std::int64_t>(2);

  SampleScan::Storage storage() {
    return {
        .window = window.data(),
        .window_cells = window.size(),
        .below = below.data(),
        .above = above.data(),
        .spill = spill.data(),
        .spill_capacity = spill.size(),
    };
  }
};

/// The rank-th smallest by passes over the values, in little memory so that every path is taken.
std::int64_t order_statistic(const std::vector<std::int64_t>& values, std::uint64_t rank,
                             std::int64_t base) {
  constexpr std::size_t capacity = 8;
  Memory memory_of_scan;
  SampleScan scan(memory_of_scan.storage(), base);
  scan.add(values.data(), values.size());
  RankInterval interval = scan.locate(rank);
  int passes = 1;
  while (interval.lowest != interval.highest) {
    std::vector<std::int64_t> memory(capacity);
    RankRefinement refinement(interval, memory.data(), capacity);
    refinement.add(values.data(), values.size());
    interval = refinement.locate(rank);
    EXPECT_LT(++passes, 30);
  }
  return interval.lowest;
}

void expect_every_rank(const std::vector<std::int64_t>& values, std::int64_t base) {
  std::vector<std::int64_t> ordered = values;
  std::ranges::sort(ordered);
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    ASSERT_EQ(order_statistic(values, i + 1, base), ordered[i]) << "rank " << i + 1;
  }
}

}  // namespace

TEST(SampleScan, FindsEveryRankOfLatenciesOfAnySize) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> values;
    values.reserve(60);
    for (int i = 0; i < 60; ++i) {
      values.push_back(random_latency(random));
    }
    expect_every_rank(values, random_latency(random));
  }
}

TEST(SampleScan, FindsRanksAmongEqualValuesAndAtTheEnds) {
  expect_every_rank(std::vector<std::int64_t>(40, INT64_MAX), 0);
  expect_every_rank(std::vector<std::int64_t>(40, INT64_MIN), 0);
  expect_every_rank({INT64_MIN, INT64_MAX, 0, INT64_MIN + 1, INT64_MAX - 1}, INT64_MIN);
  expect_every_rank({INT64_MIN, INT64_MAX, 0, INT64_MIN + 1, INT64_MAX - 1}, INT64_MAX);
}

TEST(SampleScan, MomentsCountEverySampleOnce) {
  Memory memory;
  SampleScan scan(memory.storage(), 100);
  const std::vector<std::int64_t> values{100, 163, 164, 99, -5, 130};
  scan.add(values.data(), values.size());
  latenz::Moments expected;
  for (const auto value : values) {
    expected.add(value);
  }
  const latenz::Moments found = scan.moments();
  EXPECT_EQ(found.n(), 6U);
  EXPECT_EQ(found.min(), -5);
  EXPECT_EQ(found.max(), 164);
  EXPECT_EQ(found.sum(), expected.sum());
  EXPECT_EQ(found.sum_of_squares(), expected.sum_of_squares());
  EXPECT_EQ(scan.below_window(), 2U);
  EXPECT_FALSE(scan.spill_complete());
}
