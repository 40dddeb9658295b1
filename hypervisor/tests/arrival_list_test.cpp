// SPDX-License-Identifier: Apache-2.0
// Lists of arrivals come in their order, once or again and again; and the ticks they become.
#include "arrival_list.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "latenz/split_mix.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::array<ArrivalEntry, 3> entries = {{{.time_ns = 5, .source = 1, .run = 1},
                                                  {.time_ns = 5, .source = 2, .run = 1},
                                                  {.time_ns = 90, .source = 0, .run = 1}}};

TEST(ArrivalList, RepeatsAllFromOnePeriodToTheNext) {
  ArrivalList list;
  list.begin(entries, 3, Duration(100), Instant(1000));
  std::vector<std::int64_t> times;
  std::vector<std::uint16_t> sources;
  for (; !list.done(); list.advance()) {
    times.push_back(list.time().ns());
    sources.push_back(list.source());
  }
  EXPECT_EQ(times,
            (std::vector<std::int64_t>{1005, 1005, 1090, 1105, 1105, 1190, 1205, 1205, 1290}));
  EXPECT_EQ(sources, (std::vector<std::uint16_t>{1, 2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(list.time(), Instant::never());
}

TEST(ArrivalList, IsDoneAtOnceIfItIsEmpty) {
  ArrivalList list;
  list.begin({}, 3, Duration(100), Instant(1000));
  EXPECT_TRUE(list.done());
  EXPECT_EQ(list.time(), Instant::never());
}

TEST(ArrivalList, PassesOverOneSourceUpToATimeAsGoingOneByOneDoes) {
  SplitMix64 random(9);
  for (int round = 0; round < 300; ++round) {
    std::vector<ArrivalEntry> drawn(1 + (random.next() % 40));
    std::uint64_t time_ns = 0;
    for (ArrivalEntry& each : drawn) {
      time_ns += random.next() % 3;
      each = {.time_ns = time_ns, .source = random.next() % 8 == 0 ? 1U : 0U, .run = 77};
    }
    ArrivalList::find_runs(drawn);
    ArrivalList list;
    ArrivalList one_by_one;
    list.begin(drawn, 1, Duration(100), Instant(1000));
    one_by_one.begin(drawn, 1, Duration(100), Instant(1000));
    while (!list.done()) {
      const Instant end(list.time().ns() + static_cast<std::int64_t>(random.next() % 12) - 1);
      const std::uint16_t source = list.source();
      list.pass_over(end);
      while (!one_by_one.done() && one_by_one.source() == source && one_by_one.time() < end) {
        one_by_one.advance();
      }
      ASSERT_EQ(list.time(), one_by_one.time());
      if (list.done()) break;
      ASSERT_EQ(list.source(), one_by_one.source());
      list.advance();
      one_by_one.advance();
    }
    EXPECT_TRUE(one_by_one.done());
  }
}

TEST(ArrivalList, PassesOverTheLastOfARoundIntoTheNext) {
  ArrivalList list;
  list.begin(entries, 2, Duration(100), Instant(1000));
  list.advance();
  list.advance();
  list.pass_over(Instant(1091));
  EXPECT_EQ(list.time(), Instant(1105));
  EXPECT_EQ(list.source(), 1);
}

/// Bit by bit: floor(time_ns * hz / 10^9), and what remains.
std::pair<std::int64_t, std::uint64_t> divided(std::uint64_t time_ns, std::uint64_t hz) {
  constexpr std::uint64_t second = 1'000'000'000;
  std::int64_t ticks = 0;
  std::uint64_t rest = 0;
  for (int bit = 63; bit >= 0; --bit) {
    rest = (rest * 2) + ((time_ns >> static_cast<unsigned>(bit) & 1U) * hz);
    ticks = (ticks * 2) + static_cast<std::int64_t>(rest / second);
    rest %= second;
  }
  return {ticks, rest};
}

TEST(Clock, RoundsAsLongDivisionDoes) {
  SplitMix64 random(7);
  for (const std::uint64_t hz : {1'000'000'000ULL, 62'500'000ULL, 99'999'001ULL, 33'333'333ULL}) {
    const Clock clock(hz);
    for (int i = 0; i < 10'000; ++i) {
      const std::uint64_t time_ns = random.next() >> (1 + (random.next() % 60));
      const auto [below, rest] = divided(time_ns, hz);
      EXPECT_EQ(clock.at_most(time_ns).ns(), below);
      EXPECT_EQ(clock.at_least(time_ns).ns(), below + (rest != 0 ? 1 : 0));
      EXPECT_EQ(clock.duration(time_ns).ns(), below + (rest >= 500'000'000 ? 1 : 0));
      EXPECT_EQ(clock.remainder(time_ns), rest);
    }
  }
}

TEST(Clock, DistancesThatAreKeptInNanosecondsAreKeptInTicks) {
  SplitMix64 random(8);
  const Clock clock(62'500'000);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t first = random.next() % 1'000'000;
    const std::uint64_t distance = random.next() % 1'000'000;
    const std::uint64_t second = first + distance + (random.next() % 20);
    EXPECT_GE(clock.nearest(second) - clock.nearest(first),
              static_cast<std::uint64_t>(clock.at_most(distance).ns()));
  }
}

}  // namespace
}  // namespace latenz::hypervisor
