// SPDX-License-Identifier: Apache-2.0
#include "latenz/wide_integer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using latenz::WideInteger;
__extension__ using Int128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

namespace {

Unsigned128 joined(const WideInteger<2>& wide) {
  return (static_cast<Unsigned128>(wide.limb[1]) << 64U) | wide.limb[0];
}

std::uint64_t any_size(std::mt19937_64& random) { return random() >> (random() % 64); }

}  // namespace

TEST(WideInteger, CarriesThroughEveryLimb) {
  auto sum = WideInteger<4>::from_signed(-1);
  sum += WideInteger<4>::from_unsigned(1);
  EXPECT_EQ(sum, WideInteger<4>{});
  sum -= WideInteger<4>::from_unsigned(1);
  for (const auto limb : sum.limb) {
    EXPECT_EQ(limb, ~std::uint64_t{0});
  }
  EXPECT_EQ(sum.magnitude(), WideInteger<4>::from_unsigned(1));
}

TEST(WideInteger, EqualsTheCompilersOwn128BitArithmetic) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100'000; ++round) {
    const std::uint64_t a = any_size(random);
    const std::uint64_t b = any_size(random);
    ASSERT_EQ(joined(WideInteger<2>::multiply(a, b)), static_cast<Unsigned128>(a) * b);
    ASSERT_EQ(WideInteger<2>::multiply_by_halves(a, b), WideInteger<2>::multiply(a, b));
    const auto x = static_cast<std::int64_t>(a);
    const auto y = static_cast<std::int64_t>(b);
    auto sum = WideInteger<2>::from_signed(x);
    sum += WideInteger<2>::from_signed(y);
    ASSERT_EQ(joined(sum), static_cast<Unsigned128>(static_cast<Int128>(x) + y));
    sum -= WideInteger<2>::from_signed(x);
    ASSERT_EQ(sum, WideInteger<2>::from_signed(y));
  }
}

TEST(WideInteger, RoundsToTheNearestDouble) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100'000; ++round) {
    WideInteger<2> wide;
    wide.limb[0] = any_size(random);
    wide.limb[1] = any_size(random);
    ASSERT_EQ(wide.to_double(), static_cast<double>(joined(wide)));
  }
  WideInteger<4> just_above_half;  // 2^192 * (1 + 2^-53) + 1: only the sticky bit rounds it up
  just_above_half.limb[3] = 1;
  just_above_half.limb[2] = std::uint64_t{1} << 11U;
  EXPECT_EQ(just_above_half.to_double(), std::ldexp(1.0, 192));
  just_above_half.limb[0] = 1;
  EXPECT_EQ(just_above_half.to_double(), std::nextafter(std::ldexp(1.0, 192), INFINITY));
}

TEST(WideInteger, AddsProductsOfManyLimbs) {
  // (2^128 - 1)^2 = 2^256 - 2^129 + 1, whose limbs are 1, 0, 2^64 - 2, 2^64 - 1
  WideInteger<2> ones;
  ones.limb[0] = ones.limb[1] = ~std::uint64_t{0};
  WideInteger<4> square;
  square.add_product(ones, ones.limb[0]);
  square.add_product(ones, ones.limb[1], 1);
  EXPECT_EQ(square.limb[0], 1U);
  EXPECT_EQ(square.limb[1], 0U);
  EXPECT_EQ(square.limb[2], ~std::uint64_t{1});
  EXPECT_EQ(square.limb[3], ~std::uint64_t{0});
}
