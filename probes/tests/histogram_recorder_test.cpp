// SPDX-License-Identifier: Apache-2.0
#include "histogram_recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace latenz::probe {
namespace {

std::vector<std::int64_t> latencies() {
  std::mt19937_64 random(11);
  std::vector<std::int64_t> values{0,
                                   1,
                                   -1,
                                   2047,
                                   2048,
                                   2049,
                                   -2048,
                                   -2049,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
  for (int i = 0; i < 20'000; ++i) {
    const auto magnitude = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    values.push_back(random() % 4 == 0 ? -magnitude : magnitude);
  }
  return values;
}

// Brute force: each cell holds exactly the values within its bounds; cells do not overlap, are
// ascending, and are no wider than a thousandth of their values.
TEST(LatencyHistogram, EveryValueIsInExactlyTheCellThatNamesIt) {
  LatencyHistogram histogram;
  auto values = latencies();
  for (const std::int64_t value : values) {
    histogram.record(value);
  }
  std::ranges::sort(values);
  auto next = values.begin();
  for (const auto& [lowest_ns, width_ns, count] : histogram.cells()) {
    ASSERT_NE(next, values.end());
    EXPECT_GE(*next, lowest_ns);
    const auto last = lowest_ns + static_cast<std::int64_t>(width_ns - 1);
    const auto end = std::upper_bound(next, values.end(), last);
    EXPECT_EQ(static_cast<std::uint64_t>(end - next), count) << lowest_ns;
    const double magnitude =
        std::min(std::abs(static_cast<double>(lowest_ns)), std::abs(static_cast<double>(last)));
    EXPECT_LE(static_cast<double>(width_ns), std::max(1.0, magnitude / 1000)) << lowest_ns;
    next = end;
  }
  EXPECT_EQ(next, values.end());
}

TEST(ExactSum, PrintsSumsBeyond64BitsAndBelowZero) {
  const auto sum_of = [](std::initializer_list<std::int64_t> values) {
    ExactSum sum;
    for (const std::int64_t value : values) {
      sum.add(value);
    }
    return sum.text();
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sum_of({}), "0");
  EXPECT_EQ(sum_of({-1}), "-1");
  EXPECT_EQ(sum_of({-999'999'999, -1}), "-1000000000");
  EXPECT_EQ(sum_of({-1'000'000'001}), "-1000000001");
  EXPECT_EQ(sum_of({1'000'000'000, 5}), "1000000005");
  EXPECT_EQ(sum_of({5, -2'000'000'000}), "-1999999995");
  EXPECT_EQ(sum_of({most, most, most}), "27670116110564327421");
  EXPECT_EQ(sum_of({-most - 1, -most - 1}), "-18446744073709551616");
}

}  // namespace
}  // namespace latenz::probe
