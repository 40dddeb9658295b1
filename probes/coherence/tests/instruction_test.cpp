// SPDX-License-Identifier: Apache-2.0
// Words as GNU as 2.40 assembles them.
#include "instruction.hpp"

#include <gtest/gtest.h>

namespace latenz::coherence {
namespace {

struct Case {
  std::uint32_t word;
  Operation operation;
  unsigned argument;
};

class Decoded : public testing::TestWithParam<Case> {};

TEST_P(Decoded, IsWhatTheAssemblerWasTold) {
  const Instruction found = decoded(GetParam().word);
  EXPECT_EQ(found.operation, GetParam().operation);
  EXPECT_EQ(found.argument, GetParam().argument);
}

INSTANTIATE_TEST_SUITE_P(
    Maintenance, Decoded,
    testing::Values(Case{0xd50b7a23, Operation::clean, 3},                     // dc cvac, x3
                    Case{0xd50b7b23, Operation::clean_to_instructions, 3},     // dc cvau, x3
                    Case{0xd5087623, Operation::invalidate, 3},                // dc ivac, x3
                    Case{0xd50b7e25, Operation::clean_and_invalidate, 5},      // dc civac, x5
                    Case{0xd50b7427, Operation::zero, 7},                      // dc zva, x7
                    Case{0xd5087641, Operation::invalidate_set, 1},            // dc isw, x1
                    Case{0xd5087a41, Operation::clean_set, 1},                 // dc csw, x1
                    Case{0xd5087e41, Operation::clean_invalidate_set, 1},      // dc cisw, x1
                    Case{0xd508711f, Operation::drop_all_instructions, 31},    // ic ialluis
                    Case{0xd508751f, Operation::drop_instructions, 31},        // ic iallu
                    Case{0xd50b7522, Operation::invalidate_instruction, 2},    // ic ivau, x2
                    Case{0xd508871f, Operation::drop_translations, 31},        // tlbi vmalle1
                    Case{0xd508831f, Operation::drop_all_translations, 31},    // tlbi vmalle1is
                    Case{0xd50c871f, Operation::drop_translations, 31},        // tlbi alle2
                    Case{0xd5088722, Operation::forget_address, 2},            // tlbi vae1, x2
                    Case{0xd5088322, Operation::forget_address_anywhere, 2}),  // tlbi vae1is, x2
    [](const auto& each) { return "Word" + std::to_string(each.param.word); });

INSTANTIATE_TEST_SUITE_P(
    Others, Decoded,
    testing::Values(Case{0xd5033f9f, Operation::completion_barrier, 31},  // dsb sy
                    Case{0xd5033b9f, Operation::completion_barrier, 31},  // dsb ish
                    Case{0xd5033bbf, Operation::memory_barrier, 31},      // dmb ish
                    Case{0xd5181000, Operation::controls, 0},             // msr sctlr_el1, x0
                    Case{0xd51c1102, Operation::controls, 2},             // msr hcr_el2, x2
                    Case{0xd51c2103, Operation::controls, 3},             // msr vttbr_el2, x3
                    Case{0xd518a200, Operation::controls, 0},             // msr mair_el1, x0
                    Case{0xd51be220, Operation::other, 0},                // msr cntp_ctl_el0, x0
                    Case{0xd5381000, Operation::other, 0},                // mrs x0, sctlr_el1
                    Case{0xd5033fdf, Operation::other, 31},               // isb
                    Case{0xd503201f, Operation::other, 31}),              // nop
    [](const auto& each) { return "Word" + std::to_string(each.param.word); });

TEST(Decoded, TellsWhoseTranslationsAreDropped) {
  EXPECT_EQ(decoded(0xd508871f).regime, Regime::el10);  // tlbi vmalle1
  EXPECT_EQ(decoded(0xd50c871f).regime, Regime::el2);   // tlbi alle2
  EXPECT_EQ(decoded(0xd50c87df).regime, Regime::el10);  // tlbi vmalls12e1
  EXPECT_EQ(decoded(0xd50e871f).regime, Regime::el3);   // tlbi alle3
}

TEST(IsExecuted, NotWhatTheHypervisorTraps) {
  Controls controls{.sctlr = 1U << 26U, .hcr = 1U << 22U};
  EXPECT_FALSE(is_executed(Operation::clean_set, 1, controls));
  EXPECT_TRUE(is_executed(Operation::clean_set, 2, controls));
  EXPECT_TRUE(is_executed(Operation::clean, 1, controls));
  EXPECT_TRUE(is_executed(Operation::clean, 0, controls));
  controls = {.hcr = 1U << 23U};
  EXPECT_FALSE(is_executed(Operation::clean, 1, controls));
  EXPECT_FALSE(is_executed(Operation::clean_to_instructions, 0, controls)) << "UCI is 0";
  EXPECT_TRUE(is_executed(Operation::completion_barrier, 0, controls));
}

}  // namespace
}  // namespace latenz::coherence
