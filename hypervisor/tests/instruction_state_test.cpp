// SPDX-License-Identifier: Apache-2.0
// Stepping over an instruction of a 32-bit program leaves it as if it had been executed.
#include "instruction_state.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t thumb = 0x30;

/// SPSR of a Thumb program with an ITSTATE.
constexpr std::uint64_t state(std::uint64_t it) {
  return 0x6000'0000 | thumb | ((it & 3U) << 25U) | ((it & 0xFCU) << 8U);
}

TEST(InstructionState, LengthIsTold) {
  EXPECT_EQ(instruction_bytes(1U << 25U), 4);
  EXPECT_EQ(instruction_bytes(0x93U << 24U), 4);
  EXPECT_EQ(instruction_bytes(0x90U << 24U), 2);
}

TEST(InstructionState, BlocksAdvanceAsTheManualsFunctionDoes) {
  EXPECT_EQ(behind_instruction(state(0x14)), state(0x08)) << "ITE NE: then EQ";
  EXPECT_EQ(behind_instruction(state(0x08)), state(0)) << "the last one";
  EXPECT_EQ(behind_instruction(state(0xE1)), state(0xE2));
  EXPECT_EQ(behind_instruction(state(0x1F)), state(0x1E));
}

TEST(InstructionState, OutsideOfBlocksNothingChanges) {
  EXPECT_EQ(behind_instruction(state(0)), state(0));
  EXPECT_EQ(behind_instruction(0x6000'03C5), 0x6000'03C5U) << "AArch64";
  EXPECT_EQ(behind_instruction(0x6600'FC10), 0x6600'FC10U) << "AArch32, not Thumb";
}

}  // namespace
}  // namespace latenz::hypervisor
