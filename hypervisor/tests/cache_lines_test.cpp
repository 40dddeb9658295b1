// SPDX-License-Identifier: Apache-2.0
// Only lines that exist are handed to the processor: for others it may do anything.
#include "cache_lines.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace latenz::hypervisor {
namespace {

/// CCSIDR_EL1 of a cache: sets, ways, bytes of a line.
constexpr std::uint64_t size_of(std::uint64_t sets, std::uint64_t ways, unsigned line_shift) {
  return ((sets - 1) << 13U) | ((ways - 1) << 3U) | (line_shift - 4);
}

/// A Cortex-A53 with 32 KiB and 1 MiB: 4 and 16 ways, lines of 64 bytes.
constexpr CacheLines cortex_a53() {
  CacheLines made;
  made.add(0, size_of(128, 4, 6));
  made.add(1, size_of(1024, 16, 6));
  return made;
}

constexpr std::uint64_t operand(std::uint64_t level, std::uint64_t set, std::uint64_t way,
                                unsigned way_bits) {
  return (level << 1U) | (set << 6U) | (way << (32 - way_bits));
}

TEST(CacheLines, EveryLineOfBothLevelsExists) {
  const CacheLines lines = cortex_a53();
  for (std::uint64_t set = 0; set < 128; ++set) {
    for (std::uint64_t way = 0; way < 4; ++way) {
      EXPECT_TRUE(lines.exists(operand(0, set, way, 2)));
    }
  }
  for (std::uint64_t set = 0; set < 1024; ++set) {
    for (std::uint64_t way = 0; way < 16; ++way) {
      EXPECT_TRUE(lines.exists(operand(1, set, way, 4)));
    }
  }
}

TEST(CacheLines, NothingElseExists) {
  const CacheLines lines = cortex_a53();
  EXPECT_FALSE(lines.exists(operand(0, 128, 0, 2)));
  EXPECT_FALSE(lines.exists(operand(1, 1024, 0, 4)));
  EXPECT_FALSE(lines.exists(operand(0, 0, 0, 2) | 1U)) << "a bit that must be zero";
  EXPECT_FALSE(lines.exists(operand(0, 0, 0, 2) | 0x10U)) << "within a line";
  EXPECT_FALSE(lines.exists(operand(0, 0, 0, 2) | (1ULL << 40U)));
  for (std::uint64_t level = 2; level < 8; ++level) EXPECT_FALSE(lines.exists(level << 1U));
}

TEST(CacheLines, WaysThatAreNoPowerOfTwo) {
  CacheLines lines;
  lines.add(0, size_of(64, 3, 6));
  EXPECT_TRUE(lines.exists(operand(0, 63, 2, 2)));
  EXPECT_FALSE(lines.exists(operand(0, 63, 3, 2)));
}

TEST(CacheLines, OneWayTakesNoBits) {
  CacheLines lines;
  lines.add(0, size_of(64, 1, 6));
  EXPECT_TRUE(lines.exists(operand(0, 63, 0, 0)));
  EXPECT_FALSE(lines.exists(operand(0, 64, 0, 0)));
}

TEST(CacheLines, LevelsOfDataAreTold) {
  constexpr std::uint64_t two_levels = 0x0A20'0023;  // CLIDR_EL1 of a Cortex-A53 with L2
  EXPECT_TRUE(CacheLines::holds_data(two_levels, 0));
  EXPECT_TRUE(CacheLines::holds_data(two_levels, 1));
  EXPECT_FALSE(CacheLines::holds_data(two_levels, 2));
  EXPECT_FALSE(CacheLines::holds_data(1, 0)) << "instructions only";
}

}  // namespace
}  // namespace latenz::hypervisor
