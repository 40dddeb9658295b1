// SPDX-License-Identifier: Apache-2.0
#include "latenz/slot_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

using latenz::Count;
using latenz::Duration;
using latenz::Slot;
using latenz::SlotTable;
using latenz::Supply;

namespace {

constexpr std::uint32_t partitions = 3;

/// The most marked ticks in any window of each length 0 .. `longest`, over all alignments.
std::vector<std::int64_t> most_marked(const std::vector<bool>& cycle, std::size_t longest) {
  std::vector<std::int64_t> most(longest + 1);
  for (std::size_t start = 0; start < cycle.size(); ++start) {
    std::int64_t marked = 0;
    for (std::size_t length = 1; length <= longest; ++length) {
      marked += cycle[(start + length - 1) % cycle.size()] ? 1 : 0;
      most[length] = std::max(most[length], marked);
    }
  }
  return most;
}

/// The ticks of one cycle in which a partition cannot run.
std::vector<bool> blocked_ticks(const std::vector<Slot>& slots, std::int64_t slot_switch,
                                std::uint32_t partition) {
  std::vector<bool> blocked;
  for (const Slot& slot : slots) {
    for (std::int64_t tick = 0; tick < slot.length.ns(); ++tick) {
      blocked.push_back(slot.partition != partition || tick < slot_switch);
    }
  }
  return blocked;
}

std::vector<bool> start_ticks(const std::vector<Slot>& slots) {
  std::vector<bool> starts;
  for (const Slot& slot : slots) {
    starts.push_back(true);
    starts.resize(starts.size() + static_cast<std::size_t>(slot.length.ns()) - 1);
  }
  return starts;
}

void expect_supply(const Supply& supply, const std::vector<std::int64_t>& blocked) {
  Duration work;  // that is surely done in the window
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    const Duration window(static_cast<std::int64_t>(i));
    ASSERT_EQ(supply.blocked(window), Duration(blocked[i])) << "window " << i;
    // law: time_to_supply(work) is the least window with window - blocked(window) >= work
    for (; work <= window - Duration(blocked[i]); work += Duration(1)) {
      ASSERT_EQ(supply.time_to_supply(work), window) << "work " << work.ns();
    }
  }
}

void expect_tick_model(const std::vector<Slot>& slots, std::int64_t slot_switch) {
  const SlotTable table(slots, Duration(slot_switch));
  const auto longest = static_cast<std::size_t>((3 * table.cycle().ns()) + 2);
  for (std::uint32_t partition = 0; partition < partitions; ++partition) {
    const auto ticks = blocked_ticks(slots, slot_switch, partition);
    const Supply supply(table, partition);
    ASSERT_EQ(supply.per_cycle().ns(), std::ranges::count(ticks, false));
    expect_supply(supply, most_marked(ticks, longest));
  }
  const auto starts = most_marked(start_ticks(slots), longest);
  for (std::size_t window = 0; window <= longest; ++window) {
    ASSERT_EQ(table.switches(Duration(static_cast<std::int64_t>(window))), starts[window]);
  }
}

/// Calls `check` with every table of up to so many slots, each of length 1 .. `longest`.
void for_every_table(std::size_t most_slots, std::int64_t longest,
                     const std::function<void(const std::vector<Slot>&)>& check) {
  std::vector<Slot> slots;
  const std::function<void()> extend = [&] {
    if (!slots.empty()) {
      check(slots);
    }
    if (slots.size() == most_slots) {
      return;
    }
    for (std::uint32_t partition = 0; partition < partitions; ++partition) {
      for (std::int64_t length = 1; length <= longest; ++length) {
        slots.push_back({.partition = partition, .length = Duration(length)});
        extend();
        slots.pop_back();
      }
    }
  };
  extend();
}

}  // namespace

TEST(SlotTable, EqualsATickByTickModelForEveryTinyTable) {
  for_every_table(4, 3, [](const std::vector<Slot>& slots) {
    std::int64_t shortest = INT64_MAX;
    for (const Slot& slot : slots) {
      shortest = std::min(shortest, slot.length.ns());
    }
    for (std::int64_t slot_switch = 0; slot_switch < shortest; ++slot_switch) {
      expect_tick_model(slots, slot_switch);
    }
  });
}

TEST(SlotTable, EqualsATickByTickModelForManySlots) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Slot> slots(1 + (random() % 9));
    for (Slot& slot : slots) {
      slot = {.partition = static_cast<std::uint32_t>(random() % partitions),
              .length = Duration(static_cast<std::int64_t>(4 + (random() % 9)))};
    }
    expect_tick_model(slots, static_cast<std::int64_t>(random() % 4));
  }
}

TEST(SlotTable, SinglePartitionLosesOnlyTheSwitches) {
  const Slot slot{.partition = 0, .length = Duration(100)};
  const Supply free(SlotTable({&slot, 1}, Duration()), 0);
  EXPECT_EQ(free.blocked(Duration(1'000'000)), Duration());
  EXPECT_EQ(free.time_to_supply(Duration(12'345)), Duration(12'345));
  const Supply switching(SlotTable({&slot, 1}, Duration(10)), 0);
  EXPECT_EQ(switching.blocked(Duration(10)), Duration(10));
  EXPECT_EQ(switching.time_to_supply(Duration(91)), Duration(111));
}

TEST(SlotTable, PartitionWithoutSlotsNeverRuns) {
  const Slot slot{.partition = 0, .length = Duration(100)};
  const Supply supply(SlotTable({&slot, 1}, Duration()), 1);
  EXPECT_EQ(supply.per_cycle(), Duration());
  EXPECT_EQ(supply.blocked(Duration(1000)), Duration(1000));
  EXPECT_TRUE(supply.time_to_supply(Duration(1)).is_unbounded());
  EXPECT_EQ(supply.time_to_supply(Duration()), Duration());
}

TEST(SlotTable, LongTimesAreExactOrUnboundedAndNeverWrap) {
  const Slot slots[] = {{.partition = 0, .length = Duration(1)},
                        {.partition = 1, .length = Duration(2)}};
  const SlotTable table(slots, Duration());
  const Supply supply(table, 0);
  const std::int64_t third = INT64_MAX / 3;
  EXPECT_EQ(supply.time_to_supply(Duration(third)).ns(), third * 3);
  EXPECT_TRUE(supply.time_to_supply(Duration(third + 1)).is_unbounded());
  EXPECT_TRUE(supply.time_to_supply(Duration::unbounded()).is_unbounded());
  EXPECT_EQ(supply.blocked(Duration(third * 3)).ns(), third * 2);
  EXPECT_EQ(table.switches(Duration(third * 3)), third * 2);
  EXPECT_EQ(table.switches(Duration::unbounded()), latenz::endless);
}
