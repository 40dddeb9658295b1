// SPDX-License-Identifier: Apache-2.0
// Instructions of A64 that maintain caches and translation: Arm Architecture Reference Manual
// (DDI 0487), C5.3 to C5.5.
#pragma once

#include <cstdint>

#include "translation.hpp"

namespace latenz::coherence {

enum class Operation : std::uint8_t {
  other,
  clean,                    ///< dc cvac, dc cvap: to memory, by address
  clean_to_instructions,    ///< dc cvau
  invalidate,               ///< dc ivac
  clean_and_invalidate,     ///< dc civac
  zero,                     ///< dc zva
  invalidate_set,           ///< dc isw
  clean_set,                ///< dc csw
  clean_invalidate_set,     ///< dc cisw
  invalidate_instruction,   ///< ic ivau
  drop_instructions,        ///< ic iallu: this core's
  drop_all_instructions,    ///< ic ialluis: every core's
  drop_translations,        ///< tlbi, this core's
  drop_all_translations,    ///< tlbi, every core's
  forget_address,           ///< tlbi of some addresses, this core's
  forget_address_anywhere,  ///< tlbi of some addresses, every core's
  memory_barrier,           ///< dmb
  completion_barrier,       ///< dsb
  controls,                 ///< a write to a register that decides about translation
};

/// An instruction, the number of the register with its argument (31: zero), and for those that drop
/// translations, whose.
struct Instruction {
  Operation operation = Operation::other;
  unsigned argument = 31;
  Regime regime = Regime::el10;
};

Instruction decoded(std::uint32_t word);

/// Returns whether an instruction is executed at a level, and not trapped by SCTLR_EL1 at EL0 or by
/// HCR_EL2 below EL2.
bool is_executed(Operation operation, unsigned level, const Controls& controls);

}  // namespace latenz::coherence
