// SPDX-License-Identifier: Apache-2.0
#include "latenz/skipped.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "latenz/sample_scan.hpp"

using latenz::skipped_while_waiting;
using latenz::SkippedLatencies;

namespace {

using Latencies = std::vector<std::int64_t>;

/// One after the other, by the definition.
Latencies by_definition(const Latencies& latencies, const Latencies& missed, std::int64_t period) {
  Latencies all;
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    std::int64_t waited = latencies[i];
    for (std::int64_t k = 0; k < missed[i] && waited >= period; ++k) {
      waited -= period;
      all.push_back(waited);
    }
  }
  return all;
}

Latencies in_blocks(const Latencies& latencies, const Latencies& missed, std::int64_t period,
                    std::size_t room) {
  SkippedLatencies skipped(latencies.data(), missed.data(), latencies.size(), period);
  Latencies all;
  Latencies block(room);
  while (const std::size_t count = skipped.next(block.data(), room)) {
    EXPECT_LE(count, room);
    all.insert(all.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return all;
}

}  // namespace

TEST(Skipped, EachWaitedOnePeriodLessThanTheOneBefore) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t period = std::uniform_int_distribution<std::int64_t>(1, 50)(random);
    std::uniform_int_distribution<std::int64_t> latency(-20, 400);
    std::uniform_int_distribution<std::int64_t> count(0, 12);
    Latencies latencies(30);
    Latencies missed(30);
    std::ranges::generate(latencies, [&] { return latency(random); });
    std::ranges::generate(missed, [&] { return count(random); });
    const Latencies expected = by_definition(latencies, missed, period);
    for (const std::size_t room : {1, 7, 4096}) {
      ASSERT_EQ(in_blocks(latencies, missed, period, room), expected);
    }
  }
}

TEST(Skipped, WithoutAPeriodOrALatencyNothingIsExplained) {
  EXPECT_EQ(skipped_while_waiting(1000, 5, 0), 0U);
  EXPECT_EQ(skipped_while_waiting(1000, 5, -1), 0U);
  EXPECT_EQ(skipped_while_waiting(-1000, 5, 100), 0U);
  EXPECT_EQ(skipped_while_waiting(99, INT64_MAX, 100), 0U);
  EXPECT_EQ(skipped_while_waiting(100, INT64_MAX, 100), 1U);
  EXPECT_EQ(skipped_while_waiting(INT64_MAX, 3, 1), 3U);
  EXPECT_EQ(skipped_while_waiting(INT64_MAX, INT64_MAX, 1), static_cast<std::uint64_t>(INT64_MAX));
}

TEST(Skipped, ScansOfSamplesAndSkippedOnesMergeToOneOfAll) {
  struct Memory {
    std::vector<std::uint64_t> window = std::vector<std::uint64_t>(64);
    std::vector<std::uint64_t> below = std::vector<std::uint64_t>(outside_cells());
    std::vector<std::uint64_t> above = std::vector<std::uint64_t>(outside_cells());
    std::vector<std::int64_t> spill = std::vector<std::int64_t>(4);
    static std::size_t outside_cells() { return latenz::SampleScan::outside.cells(); }
    latenz::SampleScan scan{{.window = window.data(),
                             .window_cells = window.size(),
                             .below = below.data(),
                             .above = above.data(),
                             .spill = spill.data(),
                             .spill_capacity = spill.size()},
                            100};
  };
  const Latencies first{5, 100, 163, 164, 90};
  const Latencies second{-7, 120, 1 << 20, 100};
  Latencies all = first;
  all.insert(all.end(), second.begin(), second.end());
  Memory parts;
  Memory other;
  Memory whole;
  parts.scan.add(first.data(), first.size());
  other.scan.add(second.data(), second.size());
  whole.scan.add(all.data(), all.size());
  parts.scan.merge(other.scan);
  EXPECT_EQ(parts.scan.moments().sum(), whole.scan.moments().sum());
  EXPECT_EQ(parts.scan.below_window(), whole.scan.below_window());
  EXPECT_EQ(parts.scan.spilled(), 4U);
  EXPECT_FALSE(parts.scan.spill_complete()) << "five lie outside";
  for (std::uint64_t rank = 1; rank <= all.size(); ++rank) {
    EXPECT_EQ(parts.scan.locate(rank).lowest, whole.scan.locate(rank).lowest);
    EXPECT_EQ(parts.scan.locate(rank).before, whole.scan.locate(rank).before);
  }
}
