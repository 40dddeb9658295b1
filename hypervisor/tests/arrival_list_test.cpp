// SPDX-License-Identifier: Apache-2.0
// Lists of arrivals come in their order; and the ticks they become.
#include "arrival_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "latenz/split_mix.hpp"

namespace latenz::hypervisor {
namespace {

using Arrival = std::pair<std::int64_t, std::uint32_t>;  ///< its time and source

constexpr std::array<ArrivalEntry, 3> entries = {{{.time_ns = 90, .source = 0, .reserved = 0},
                                                  {.time_ns = 5, .source = 2, .reserved = 0},
                                                  {.time_ns = 5, .source = 3, .reserved = 0}}};

TEST(ArrivalList, GoesThroughAllInTheOrderOfTheirTimesAndSources) {
  ArrivalList list;
  list.begin(entries, Instant(1000));
  std::vector<std::int64_t> times;
  std::vector<std::uint16_t> sources;
  for (; !list.done(); list.advance()) {
    times.push_back(list.time().ns());
    sources.push_back(list.source());
  }
  EXPECT_EQ(times, (std::vector<std::int64_t>{1005, 1005, 1090}));
  EXPECT_EQ(sources, (std::vector<std::uint16_t>{2, 3, 0}));
  EXPECT_EQ(list.time(), Instant::never());
}

TEST(ArrivalList, IsDoneAtOnceIfItIsEmpty) {
  ArrivalList list;
  EXPECT_TRUE(list.done());
  EXPECT_EQ(list.time(), Instant::never());
  list.begin(entries, Instant(1000));
  EXPECT_FALSE(list.done());
  list.begin({}, Instant(1000));
  EXPECT_TRUE(list.done());
  EXPECT_EQ(list.time(), Instant::never());
  list.mask(2);
  list.unmask(2, Instant(1000));
  EXPECT_TRUE(list.done());
}

/// What is left of a list, one by one: first to come, first in it.
class OneByOne {
 public:
  explicit OneByOne(std::span<const ArrivalEntry> listed) {
    for (const ArrivalEntry& each : listed) {
      left_.emplace_back(static_cast<std::int64_t>(each.time_ns), each.source);
    }
    std::ranges::sort(left_);
  }

  void mask(std::uint32_t source) { masked_.insert(source); }

  void unmask(std::uint32_t source, std::int64_t from) {
    masked_.erase(source);
    std::erase_if(left_,
                  [&](const Arrival& each) { return each.second == source && each.first < from; });
  }

  [[nodiscard]] const Arrival* next() const {
    const auto found =
        std::ranges::find_if(left_, [&](const Arrival& x) { return !masked_.contains(x.second); });
    return found == left_.end() ? nullptr : &*found;
  }

  void advance() { left_.erase(left_.begin() + (next() - left_.data())); }

 private:
  std::vector<Arrival> left_;
  std::set<std::uint32_t> masked_;
};

std::vector<ArrivalEntry> drawn_list(SplitMix64& random) {
  std::vector<ArrivalEntry> drawn(random.next() % 60);
  for (ArrivalEntry& each : drawn) {
    each.time_ns = random.next() % 100;
    each.source = static_cast<std::uint32_t>(random.next() % 5);
  }
  std::ranges::sort(drawn, {},
                    [](const ArrivalEntry& each) { return std::pair(each.source, each.time_ns); });
  return drawn;
}

TEST(ArrivalList, LeavesOutWhatMaskedSourcesHaveAsGoingOneByOneDoes) {
  SplitMix64 random(9);
  std::size_t compared = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::vector<ArrivalEntry> drawn = drawn_list(random);
    ArrivalList list;
    OneByOne expected(drawn);
    list.begin(drawn, Instant(1000));
    std::int64_t now = 0;
    while (expected.next() != nullptr) {
      now = std::max(now, expected.next()->first);
      const auto source = static_cast<std::uint16_t>(random.next() % 6);
      const auto from = now + static_cast<std::int64_t>(random.next() % 12);
      switch (random.next() % 4) {
        case 0:
          list.mask(source);
          expected.mask(source);
          break;
        case 1:
          list.mask(source);
          list.unmask(source, Instant(1000 + from));
          expected.unmask(source, from);
          break;
        default:
          list.advance();
          expected.advance();
      }
      ++compared;
      ASSERT_EQ(list.done(), expected.next() == nullptr);
      if (list.done()) break;
      ASSERT_EQ(list.time().ns() - 1000, expected.next()->first);
      ASSERT_EQ(list.source(), expected.next()->second);
    }
  }
  EXPECT_GT(compared, 50'000U);
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
