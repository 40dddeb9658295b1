// SPDX-License-Identifier: Apache-2.0
#include "translation.hpp"

#include <gtest/gtest.h>

#include <map>

namespace latenz::coherence {
namespace {

std::map<std::uint64_t, std::uint64_t> memory;

bool read(std::uint64_t address, std::uint64_t& value) {
  const auto found = memory.find(address);
  value = found == memory.end() ? 0 : found->second;
  return true;
}

constexpr std::uint64_t on = 0x1005;                               // SCTLR: M, C, I
constexpr std::uint64_t control = 32U | (1U << 8U) | (1U << 10U);  // 4 GiB, walks write-back
constexpr std::uint64_t attributes = 0xBB'44'FF'00;                // device, cached, not, through
constexpr std::uint64_t device = 0U << 2U;
constexpr std::uint64_t cached = 1U << 2U;
constexpr std::uint64_t uncached = 2U << 2U;
constexpr std::uint64_t through = 3U << 2U;

class TranslationTest : public testing::Test {
 protected:
  TranslationTest() { memory.clear(); }

  Translation of(std::uint64_t address, bool instruction = false) {
    return translate(Regime::el10, controls, address, instruction, read);
  }

  Controls controls{.sctlr = on, .tcr = control, .ttbr0 = 0x8000, .mair = attributes};
};

TEST_F(TranslationTest, OffIsFlatDeviceMemoryAndInstructionsByTheirOwnSwitch) {
  controls.sctlr = 0;
  EXPECT_EQ(of(0x1234).address, 0x1234U);
  EXPECT_EQ(of(0x1234).memory, Memory::device);
  EXPECT_EQ(of(0x1234, true).memory, Memory::uncached);
  controls.sctlr = 0x1000;
  EXPECT_EQ(of(0x1234, true).memory, Memory::cached);
  EXPECT_EQ(of(0x1234).memory, Memory::device);
}

TEST_F(TranslationTest, BlocksAndPagesOfFourKibibytes) {
  memory = {{0x8000, 0x40000000 | cached | 1U},
            {0x8008, 0x9003},
            {0x9000, 0x50200000 | uncached | 1U},
            {0x9008, 0xA003},
            {0xA018, 0x60003000 | device | 3U}};
  const Translation large = of(0x12345678);
  EXPECT_TRUE(large.valid);
  EXPECT_EQ(large.address, 0x52345678U);
  EXPECT_EQ(large.memory, Memory::cached);
  ASSERT_EQ(large.reads, 1U);
  EXPECT_EQ(large.walk()[0].address, 0x8000U);
  EXPECT_TRUE(large.walk()[0].cached);
  EXPECT_EQ(of(0x40012345).address, 0x50212345U);
  EXPECT_EQ(of(0x40012345).memory, Memory::uncached);
  EXPECT_EQ(of(0x40203456).address, 0x60003456U);
  EXPECT_EQ(of(0x40203456).memory, Memory::device);
  EXPECT_EQ(of(0x40203456).reads, 3U);
  EXPECT_FALSE(of(0x40400000).valid);
}

TEST_F(TranslationTest, OnlyWriteBackIsCachedAndOnlyWhereItIsSwitchedOn) {
  memory = {{0x8000, 0x40000000 | through | 1U}, {0x8008, 0x40000000 | cached | 1U}};
  EXPECT_EQ(of(0).memory, Memory::uncached);
  EXPECT_EQ(of(0x40000000).memory, Memory::cached);
  controls.sctlr = 0x1001;
  EXPECT_EQ(of(0x40000000).memory, Memory::uncached);
  EXPECT_EQ(of(0x40000000, true).memory, Memory::cached);
  EXPECT_FALSE(of(0x40000000).walk()[0].cached) << "walks are data";
}

TEST_F(TranslationTest, WalksAreCachedIfBothFieldsSaySo) {
  memory = {{0x8000, 0x40000000 | cached | 1U}};
  controls.tcr = 32U | (1U << 8U);
  EXPECT_FALSE(of(0).walk()[0].cached);
}

TEST_F(TranslationTest, UpperAddressesHaveTheirOwnTables) {
  controls.tcr = control | (std::uint64_t{32} << 16U) | (1U << 24U) | (1U << 26U) | (2U << 30U);
  controls.ttbr1 = 0xB000;
  memory = {{0xB000, 0x80000000 | cached | 1U}};
  const Translation found = of(0xFFFF'FFFF'0000'1000);
  EXPECT_TRUE(found.valid);
  EXPECT_EQ(found.address, 0x80001000U);
}

TEST_F(TranslationTest, GranulesOfSixteenAndSixtyFourKibibytes) {
  controls.tcr = (64U - 36U) | (1U << 8U) | (1U << 10U) | (1U << 14U);
  memory = {{0x8000, 0x10003}, {0x10008, 0x60010000 | cached | 3U}};
  EXPECT_EQ(of(0x12345).address, 0x60012345U);
  controls.tcr = (64U - 36U) | (1U << 8U) | (1U << 10U) | (2U << 14U);
  memory = {{0x8000, 0x10003}, {0x10000, 0x60004000 | cached | 3U}};
  EXPECT_EQ(of(0x1234).valid, true);
  EXPECT_EQ(of(0x1234).address, 0x60005234U);
}

TEST_F(TranslationTest, StageTwoTranslatesTablesToo) {
  constexpr std::uint64_t normal = 0xFU << 2U;
  controls.hcr = 1;
  controls.vtcr = 32U | (1U << 6U) | (1U << 8U) | (1U << 10U);
  controls.vttbr = 0x0001'0000'0000'C000;
  memory = {{0xC000, 0x40000000 | normal | 1U}, {0x40008000, 0x00000000 | cached | 1U}};
  const Translation found = of(0x1234);
  EXPECT_TRUE(found.valid);
  EXPECT_EQ(found.address, 0x40001234U);
  EXPECT_EQ(found.memory, Memory::cached);
  ASSERT_EQ(found.reads, 3U);
  EXPECT_EQ(found.walk()[0].address, 0xC000U);
  EXPECT_EQ(found.walk()[1].address, 0x40008000U);
}

TEST_F(TranslationTest, TheWeakerStageDecides) {
  constexpr std::uint64_t not_cached = 0x5U << 2U;
  controls.hcr = 1;
  controls.sctlr = 0;
  controls.vtcr = 32U | (1U << 6U) | (1U << 8U) | (1U << 10U);
  controls.vttbr = 0xC000;
  memory = {{0xC000, 0x40000000 | (0xFU << 2U) | 1U}};
  EXPECT_EQ(of(0).memory, Memory::device);
  controls.hcr = 1U | (1U << 12U);  // DC
  EXPECT_EQ(of(0).memory, Memory::cached);
  memory = {{0xC000, 0x40000000 | not_cached | 1U}};
  EXPECT_EQ(of(0).memory, Memory::uncached);
  memory = {{0xC000, 0x40000000 | (0xFU << 2U) | 1U}};
  controls.hcr |= std::uint64_t{1} << 32U;  // CD
  EXPECT_EQ(of(0).memory, Memory::uncached);
  EXPECT_FALSE(of(0).walk()[0].cached);
}

}  // namespace
}  // namespace latenz::coherence
