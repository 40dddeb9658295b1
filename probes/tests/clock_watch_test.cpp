// SPDX-License-Identifier: Apache-2.0
#include "clock_watch.hpp"

#include <gtest/gtest.h>

namespace latenz::probe {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t second = 1000 * ms;

ClockOffsets offsets(std::int64_t boot_ns, std::int64_t real_ns) {
  return {.boot_ns = boot_ns, .real_ns = real_ns};
}

TEST(ClockWatch, SeesNothingInClocksThatGoOn) {
  ClockWatch watch;
  watch.look(offsets(5, 1000 * second));
  watch.look(offsets(5 + 30'000, 1000 * second - 40'000));  // as readings vary
  EXPECT_EQ(watch.suspended_ns(), 0);
  EXPECT_EQ(watch.steps(), 0);
}

TEST(ClockWatch, TellsASuspendFromAStep) {
  ClockWatch watch;
  watch.look(offsets(0, 1000 * second));
  watch.look(offsets(30 * second, 1030 * second));
  EXPECT_EQ(watch.suspended_ns(), 30 * second);
  EXPECT_EQ(watch.steps(), 0);
  watch.look(offsets(30 * second, 1027 * second));
  watch.look(std::nullopt);
  watch.look(offsets(30 * second, 1028 * second));
  EXPECT_EQ(watch.suspended_ns(), 30 * second);
  EXPECT_EQ(watch.steps(), 2);
  EXPECT_EQ(watch.stepped_ns(), -2 * second);
}

TEST(ClockWatch, SeesAStepThatASuspendHides) {
  ClockWatch watch;
  watch.look(offsets(0, 1000 * second));
  watch.look(offsets(30 * second, 1030 * second + 5 * ms));
  EXPECT_EQ(watch.suspended_ns(), 30 * second);
  EXPECT_EQ(watch.stepped_ns(), 5 * ms);
}

TEST(ClockOffsets, OfThisMachineStandStill) {
  ClockWatch watch;
  for (int i = 0; i < 100; ++i) {
    watch.look(read_clock_offsets());
  }
  EXPECT_EQ(watch.suspended_ns(), 0);
}

}  // namespace
}  // namespace latenz::probe
