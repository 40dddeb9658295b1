// SPDX-License-Identifier: Apache-2.0
#include "activation.hpp"

#include <gtest/gtest.h>

namespace latenz::probe {
namespace {

Activation late_by(std::int64_t skipped) {
  return {.due_ns = 0, .latency_ns = 0, .skipped = skipped};
}

TEST(Ending, IsTheLastActivationDueBeforeTheEnd) {
  Ending ending;
  EXPECT_FALSE(ending.is_reached(late_by(0), 999, 1000));
  EXPECT_TRUE(ending.is_reached(late_by(0), 1000, 1000));
}

TEST(Ending, BelongsOneMoreToALateOne) {
  Ending ending;
  EXPECT_FALSE(ending.is_reached(late_by(3), 999, 1000));
  EXPECT_FALSE(ending.is_reached(late_by(3), 1000, 1000));
  EXPECT_TRUE(ending.is_reached(late_by(0), 1003, 1000));
}

TEST(Ending, IsReachedHoweverLateActivationsAre) {
  Ending ending;
  EXPECT_FALSE(ending.is_reached(late_by(3), 1000, 1000));
  EXPECT_TRUE(ending.is_reached(late_by(3), 1004, 1000));
}

}  // namespace
}  // namespace latenz::probe
