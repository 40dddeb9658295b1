// SPDX-License-Identifier: Apache-2.0
// What a guest reckons from its information page is what the hypervisor does.
#include "latenz/guest_slots.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "clock.hpp"
#include "slot_cycle.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t first_slot = 987'654'321;
constexpr std::uint64_t lengths_ns[] = {500'000, 333'333, 1'000'001, 77};
constexpr PartitionIndex owners[] = {0, 1, 0, 2};

InformationPage page_of(std::uint32_t partition, std::uint64_t counter_hz) {
  InformationPage page{};
  page.partition = partition;
  page.counter_hz = counter_hz;
  page.first_slot = first_slot;
  for (const std::uint64_t length_ns : lengths_ns) {
    page.slot[page.slots] = {page.cycle_ns, length_ns, owners[page.slots], 0};
    page.cycle_ns += length_ns;
    ++page.slots;
  }
  return page;
}

class AnyCounter : public testing::TestWithParam<std::uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Counters, AnyCounter,
                         testing::Values(1'000'000'000, 62'500'000, 99'999'001, 33'333'333,
                                         19'200'000));

/// Each slot's edge of the hypervisor, asked for from a tick before it and from the edge before.
TEST_P(AnyCounter, TheNextOwnSlotBeginsWhereTheHypervisorBeginsIt) {
  const Clock clock(GetParam());
  std::vector<PlannedSlot> slots;
  slots.reserve(std::size(lengths_ns));
  for (std::size_t i = 0; i < std::size(lengths_ns); ++i) {
    slots.push_back({.partition = owners[i],
                     .length = clock.at_most(lengths_ns[i]),
                     .remainder = clock.remainder(lengths_ns[i])});
  }
  for (const std::uint32_t partition : {0U, 1U, 2U}) {
    const InformationPage page = page_of(partition, GetParam());
    SlotCycle cycle;
    cycle.begin(slots, Instant(static_cast<std::int64_t>(first_slot)));
    std::uint64_t before = 0;
    for (int i = 0; i < 100'000; ++i) {
      cycle.advance();
      if (cycle.owner() != partition) continue;
      const auto edge = static_cast<std::uint64_t>(cycle.start().ns());
      if (before != 0) {
        ASSERT_EQ(next_own_slot(page, before), edge);
        ASSERT_EQ(next_own_slot(page, edge - 1), edge);
      }
      before = edge;
    }
  }
}

TEST(GuestSlots, WithoutSlotsThereIsNoNextOne) {
  InformationPage page = page_of(3, 62'500'000);
  EXPECT_EQ(next_own_slot(page, first_slot), 0);
  page.cycle_ns = 0;
  EXPECT_EQ(next_own_slot(page, first_slot), 0);
}

}  // namespace
}  // namespace latenz::hypervisor
