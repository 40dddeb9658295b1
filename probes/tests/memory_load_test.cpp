// SPDX-License-Identifier: Apache-2.0
#include "memory_load.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace latenz::probe {
namespace {

bool all_equal(std::span<const double> values, double expected) {
  return std::ranges::all_of(values, [expected](double value) { return value == expected; });
}

// The values that STREAM's own check computes for one round: copy, scale, add, triad.
TEST(StreamArrays, ComputeWhatStreamComputes) {
  std::vector<double> memory(3UL * 100'000);
  StreamArrays arrays(memory);
  const std::atomic<bool> stop{false};
  for (std::size_t kernel = 0; kernel < stream_kernels; ++kernel) {
    EXPECT_EQ(arrays.run(kernel, stop), 100'000U);
  }
  EXPECT_TRUE(all_equal(arrays.a(), 15.0));
  EXPECT_TRUE(all_equal(arrays.b(), 3.0));
  EXPECT_TRUE(all_equal(arrays.c(), 4.0));
}

TEST(StreamArrays, StopAtOnce) {
  std::vector<double> memory(300);
  StreamArrays arrays(memory);
  const std::atomic<bool> stop{true};
  EXPECT_EQ(arrays.run(0, stop), 0U);
  EXPECT_TRUE(all_equal(arrays.c(), 0.0));
}

}  // namespace
}  // namespace latenz::probe
