// SPDX-License-Identifier: Apache-2.0
#include "latenz/wide_integer.hpp"

#include <gtest/gtest.h>

using latenz::WideInteger;

TEST(WideInteger, CarriesThroughEveryLimb) {
  WideInteger sum(~0ULL);
  sum += sum;
  EXPECT_EQ(sum.limb[0], ~0ULL - 1);
  EXPECT_EQ(sum.limb[1], 1U);
}
