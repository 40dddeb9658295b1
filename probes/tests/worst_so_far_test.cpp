// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "measuring_thread.hpp"

namespace latenz::probe {
namespace {

// Brute force: all that were admitted include the true worst, with as many copies.
TEST(WorstSoFar, AdmitsEveryOneOfTheWorst) {
  std::mt19937_64 random(7);
  for (const std::size_t capacity : {1U, 2U, 10U, 33U}) {
    for (const std::int64_t range : {3, 50, 1'000'000}) {
      WorstSoFar worst(capacity);
      std::vector<std::int64_t> all;
      std::vector<std::int64_t> admitted;
      std::uniform_int_distribution<std::int64_t> latency(-range, range);
      for (int i = 0; i < 2000; ++i) {
        all.push_back(latency(random));
        if (worst.admit(all.back())) {
          admitted.push_back(all.back());
        }
      }
      std::ranges::sort(all, std::greater<>());
      std::ranges::sort(admitted, std::greater<>());
      ASSERT_GE(admitted.size(), capacity);
      all.resize(capacity);
      admitted.resize(capacity);
      EXPECT_EQ(admitted, all);
    }
  }
}

TEST(WorstSoFar, OfNoneAdmitsNone) {
  WorstSoFar worst(0);
  EXPECT_FALSE(worst.admit(1));
}

}  // namespace
}  // namespace latenz::probe
