// SPDX-License-Identifier: Apache-2.0
#include "latenz/histogram.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using latenz::Histogram;
using latenz::HistogramLayout;

TEST(HistogramLayout, HasThePublishedSizes) {
  // Counts array lengths that HdrHistogram itself gives for these ranges and digits.
  EXPECT_EQ(HistogramLayout(1, 3'600'000'000, 3).cells(), 23'552U);
  EXPECT_EQ(HistogramLayout(1, 2, 1).cells(), 32U);
  EXPECT_EQ(HistogramLayout(1, 24ULL * 60 * 60 * 1'000'000, 3).cells(), 28'672U);
}

TEST(HistogramLayout, CellsCoverTheRangeWithoutGapOrOverlap) {
  for (const std::uint64_t lowest : {1U, 2U, 3U, 1000U}) {
    for (unsigned digits = 1; digits <= 3; ++digits) {
      const HistogramLayout layout(lowest, 1'000'000'000, digits);
      std::uint64_t expected = 0;
      for (std::size_t cell = 0; cell < layout.cells(); ++cell) {
        ASSERT_EQ(layout.lowest_of(cell), expected);
        const std::uint64_t highest = layout.highest_equivalent(expected);
        ASSERT_EQ(layout.index(expected), cell);
        ASSERT_EQ(layout.index(highest), cell);
        ASSERT_EQ(layout.lowest_equivalent(highest), expected);
        expected = highest + 1;
      }
      EXPECT_GT(expected, 1'000'000'000U);
    }
  }
}

TEST(HistogramLayout, KeepsTheSignificantDigits) {
  const HistogramLayout layout(1, INT64_MAX, 3);
  std::mt19937_64 random(4);
  for (int round = 0; round < 100'000; ++round) {
    const std::uint64_t value = random() >> (1 + random() % 63);
    ASSERT_LT(layout.index(value), layout.cells());
    ASSERT_LE((layout.width_at(value) - 1) * 1000, value);
  }
}

TEST(HistogramLayout, RefusesWhatCannotBeLaidOut) {
  EXPECT_TRUE(HistogramLayout::valid(1, 2, 1));
  EXPECT_FALSE(HistogramLayout::valid(0, 2, 1));
  EXPECT_FALSE(HistogramLayout::valid(2, 3, 1));
  EXPECT_FALSE(HistogramLayout::valid(1, 2, 0));
  EXPECT_FALSE(HistogramLayout::valid(1, 2, 6));
  EXPECT_FALSE(HistogramLayout::valid(std::uint64_t{1} << 60U, INT64_MAX, 3));
}

TEST(Histogram, RefusesWhatIsOutOfRange) {
  const HistogramLayout layout(1, 1000, 2);
  std::vector<std::uint64_t> counts(layout.cells());
  Histogram histogram(layout, counts.data());
  EXPECT_TRUE(histogram.record(1000));
  EXPECT_FALSE(histogram.record(-1));
  EXPECT_FALSE(histogram.record(INT64_MAX));
  EXPECT_EQ(histogram.n(), 1U);
}

TEST(Histogram, PartsMergedEqualTheWhole) {
  const HistogramLayout layout(1, 1'000'000, 3);
  std::vector<std::uint64_t> counts[3];
  for (auto& part : counts) {
    part.resize(layout.cells());
  }
  Histogram whole(layout, counts[0].data());
  Histogram first(layout, counts[1].data());
  Histogram second(layout, counts[2].data());
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const auto value = static_cast<std::int64_t>(random() % 1'000'000);
    ASSERT_TRUE(whole.record(value));
    ASSERT_TRUE((i % 3 != 0 ? first : second).record(value));
  }
  EXPECT_EQ(first.merge(second), 0U);
  EXPECT_EQ(counts[0], counts[1]);
}

TEST(Histogram, MergingSaysWhatDidNotFit) {
  const HistogramLayout narrow(1, 1000, 2);
  const HistogramLayout wide(1, 1'000'000, 2);
  std::vector<std::uint64_t> few(narrow.cells());
  std::vector<std::uint64_t> many(wide.cells());
  Histogram target(narrow, few.data());
  Histogram source(wide, many.data());
  ASSERT_TRUE(source.record(500, 3));
  ASSERT_TRUE(source.record(900'000, 4));
  EXPECT_EQ(target.merge(source), 4U);
  EXPECT_EQ(target.n(), 3U);
}

TEST(Histogram, FindsTheCellOfARank) {
  const HistogramLayout layout(1, 1000, 3);
  std::vector<std::uint64_t> counts(layout.cells());
  Histogram histogram(layout, counts.data());
  ASSERT_TRUE(histogram.record(7, 2));
  ASSERT_TRUE(histogram.record(900));
  EXPECT_EQ(histogram.cell_of_rank(1), 7U);
  EXPECT_EQ(histogram.cell_of_rank(2), 7U);
  EXPECT_EQ(histogram.cell_of_rank(3), 900U);
  EXPECT_EQ(histogram.cell_of_rank(4), layout.cells());
}
