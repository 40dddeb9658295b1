// SPDX-License-Identifier: Apache-2.0
#include "latenz/time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using latenz::covering_parts;
using latenz::Duration;
using latenz::Instant;
using latenz::whole_parts;
__extension__ using Int128 = __int128;

namespace {

/// Both ends of 64 bits, the middle, and everything in between by its number of bits.
std::vector<std::int64_t> telling_values() {
  std::vector<std::int64_t> values = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  std::mt19937_64 random(1);
  for (int bits = 1; bits < 64; ++bits) {
    const auto value = static_cast<std::int64_t>(random() >> static_cast<unsigned>(bits));
    values.insert(values.end(), {value, -value});
  }
  return values;
}

std::int64_t clamped(Int128 exact) {
  return static_cast<std::int64_t>(std::clamp(exact, Int128{INT64_MIN}, Int128{INT64_MAX}));
}

}  // namespace

TEST(Time, EndsAtTheEndsOf64BitsAndNeverWraps) {
  for (const std::int64_t a : telling_values()) {
    for (const std::int64_t b : telling_values()) {
      ASSERT_EQ((Duration(a) + Duration(b)).ns(), clamped(Int128{a} + b)) << a << " + " << b;
      ASSERT_EQ((Duration(a) - Duration(b)).ns(), clamped(Int128{a} - b)) << a << " - " << b;
      ASSERT_EQ((Duration(a) * b).ns(), clamped(Int128{a} * b)) << a << " * " << b;
      ASSERT_EQ((Instant(a) + Duration(b)).ns(), clamped(Int128{a} + b));
      ASSERT_EQ((Instant(a) - Instant(b)).ns(), clamped(Int128{a} - b));
    }
  }
}

TEST(Time, AssigningOperatorsSaturateLikeTheOthers) {
  Duration duration(INT64_MAX - 1);
  duration += Duration(5);
  EXPECT_TRUE(duration.is_unbounded());
  duration -= Duration(INT64_MAX);
  EXPECT_EQ(duration, Duration());
  Instant instant(INT64_MAX - 1);
  instant += Duration(5);
  EXPECT_EQ(instant, Instant::never());
}

TEST(Time, PartsAreCountedInIntegersUpToTheLargestTime) {
  for (const std::int64_t whole : telling_values()) {
    for (const std::int64_t part : telling_values()) {
      if (whole < 0 || part <= 0) {
        continue;
      }
      ASSERT_EQ(whole_parts(Duration(whole), Duration(part)), whole / part);
      ASSERT_EQ(Int128{covering_parts(Duration(whole), Duration(part))},
                (Int128{whole} + part - 1) / part);
    }
  }
  EXPECT_EQ(covering_parts(Duration(-5), Duration(3)), 0);
  // doubles, with 53 bits, would lose this one
  EXPECT_EQ(covering_parts(Duration((INT64_C(1) << 53) + 1), Duration(1)), (INT64_C(1) << 53) + 1);
}
