// SPDX-License-Identifier: Apache-2.0
// A partition's health against lists of all that ever happened to it.
#include "health.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace {

using latenz::hypervisor::Clock;
using latenz::hypervisor::Health;
using latenz::hypervisor::PartitionEntry;
using latenz::hypervisor::Reaction;

constexpr std::uint64_t gigahertz = 1'000'000'000;

Health made(std::uint32_t restarts, std::uint64_t window, std::uint64_t watchdog,
            std::uint64_t hz = gigahertz) {
  PartitionEntry entry{};
  entry.restarts = restarts;
  entry.restart_window_ns = window;
  entry.watchdog_ns = watchdog;
  Health health;
  health.begin(entry, Clock(hz));
  return health;
}

/// As many restarts as are permitted, in no window one more, and no fault in vain.
TEST(Health, RestartsAtMostSoOftenInAnyWindow) {
  std::mt19937 random(7);
  for (std::uint32_t restarts = 0; restarts <= PartitionEntry::most_timed_restarts; ++restarts) {
    for (const std::uint64_t window : {0, 1, 50, 400}) {
      Health health = made(restarts, window, 0);
      std::vector<std::uint64_t> restarted;
      std::uint64_t now = 1000;
      for (int i = 0; i < 500; ++i) {
        now += random() % 30;
        const auto recent = std::ranges::count_if(
            restarted, [&](std::uint64_t at) { return window == 0 || now - at < window; });
        const bool permitted = std::cmp_less(recent, restarts);
        ASSERT_EQ(health.fault(Reaction::restart, now),
                  permitted ? Reaction::restart : Reaction::stop);
        if (permitted) restarted.push_back(now);
      }
      EXPECT_EQ(health.faults(), 500U);
    }
  }
}

TEST(Health, WhatIsNoRestartCountsForNone) {
  Health health = made(1, 0, 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(health.fault(Reaction::report, 1), Reaction::report);
  EXPECT_EQ(health.fault(Reaction::restart, 1), Reaction::restart);
  EXPECT_EQ(health.fault(Reaction::restart, 1), Reaction::stop);
  EXPECT_EQ(health.fault(Reaction::stop, 1), Reaction::stop);
  EXPECT_EQ(health.faults(), 8U);
}

/// One that changes its progress at least so often is never found, whenever its slots begin; one
/// that stops is found at the first slot so long after the last that saw a change.
TEST(Health, TheWatchdogFindsWhoHangsAndNobodyElse) {
  constexpr std::uint64_t timeout = 100;
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    Health health = made(0, 0, timeout);
    health.watch_from(0);
    const std::uint64_t hangs_at = random() % 2000;
    std::uint64_t kick = 0;
    std::uint64_t progress = 0;
    std::uint64_t seen_at = 0;
    for (std::uint64_t slot = random() % 60; slot < 3000; slot += 1 + (random() % 60)) {
      const std::uint64_t before = progress;
      for (; kick <= std::min(slot, hangs_at); kick += 1 + (random() % timeout)) ++progress;
      const bool found = health.expires(progress, slot);
      ASSERT_EQ(found, progress == before && slot - seen_at >= timeout);
      if (found) {
        ASSERT_GT(slot, hangs_at);
      }
      if (found || progress != before) seen_at = slot;
    }
    EXPECT_GE(health.expiries(), 6U);
  }
}

/// Of a clock whose ticks are longer than nanoseconds no time gets shorter.
TEST(Health, TicksAreRoundedUp) {
  Health health = made(0, 0, 17, gigahertz / 16);
  health.watch_from(1000);
  EXPECT_FALSE(health.expires(0, 1001));
  EXPECT_TRUE(health.expires(0, 1002));
  EXPECT_FALSE(health.expires(0, 1003)) << "it has its time again";
}

}  // namespace
