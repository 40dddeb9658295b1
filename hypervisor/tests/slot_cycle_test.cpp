// SPDX-License-Identifier: Apache-2.0
// Slots of any length on a counter of any frequency: the cycle never drifts against the table.
#include "slot_cycle.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "clock.hpp"

namespace latenz::hypervisor {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t second_ns = 1'000'000'000;

std::vector<PlannedSlot> planned(const Clock& clock, const std::vector<std::uint64_t>& lengths_ns) {
  std::vector<PlannedSlot> slots;
  slots.reserve(lengths_ns.size());
  for (const std::uint64_t length_ns : lengths_ns) {
    slots.push_back({.partition = static_cast<PartitionIndex>(slots.size()),
                     .length = clock.at_most(length_ns),
                     .remainder = clock.remainder(length_ns)});
  }
  return slots;
}

class AnyFrequency : public testing::TestWithParam<std::uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Counters, AnyFrequency,
                         testing::Values(1'000'000'000, 62'500'000, 99'990'000, 99'999'001,
                                         33'333'333, 54'000'000, 19'200'000, 24'000'000));

TEST_P(AnyFrequency, EdgesAreTheTablesRoundedDown) {
  const std::vector<std::uint64_t> lengths_ns = {500'000, 333'333, 1'000'001, 77};
  const Clock clock(GetParam());
  const std::vector<PlannedSlot> slots = planned(clock, lengths_ns);
  SlotCycle cycle;
  const Instant epoch(12'345);
  cycle.begin(slots, epoch);
  std::uint64_t begin_ns = 0;
  for (std::size_t i = 0; i < 400'000; ++i) {
    cycle.advance();
    const auto exact =
        static_cast<std::int64_t>(static_cast<Wide>(begin_ns) * GetParam() / second_ns);
    ASSERT_EQ((cycle.start() - epoch).ns(), exact) << "slot " << i;
    ASSERT_EQ(cycle.owner(), i % lengths_ns.size());
    begin_ns += lengths_ns[i % lengths_ns.size()];
  }
}

TEST_P(AnyFrequency, FormerOwnersAreFoundExactly) {
  const Clock clock(GetParam());
  const std::vector<PlannedSlot> slots = planned(clock, {1'003, 555, 2'048, 777});
  SlotCycle cycle;
  cycle.begin(slots, Instant(0));
  std::vector<PartitionIndex> owner_of_tick;
  for (std::size_t i = 0; i < 500; ++i) {
    cycle.advance();
    for (std::int64_t tick = cycle.start().ns(); tick < cycle.end().ns(); ++tick) {
      owner_of_tick.push_back(cycle.owner());
    }
    for (std::size_t back = 0; back < 5'000 && back < owner_of_tick.size(); ++back) {
      const std::size_t tick = owner_of_tick.size() - 1 - back;
      ASSERT_EQ(cycle.owner_at(Instant(static_cast<std::int64_t>(tick))), owner_of_tick[tick]);
    }
  }
  EXPECT_EQ(cycle.owner_at(Instant(-1)), nobody);
}

}  // namespace
}  // namespace latenz::hypervisor
