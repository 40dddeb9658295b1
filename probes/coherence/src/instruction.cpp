// SPDX-License-Identifier: Apache-2.0
#include "instruction.hpp"

#include <array>

namespace latenz::coherence {
namespace {

/// op1, CRn, CRm and op2 of a SYS instruction where they stand in it.
constexpr std::uint32_t system(unsigned op1, unsigned crn, unsigned crm, unsigned op2) {
  return 0xD508'0000U | (op1 << 16U) | (crn << 12U) | (crm << 8U) | (op2 << 5U);
}

struct Known {
  std::uint32_t word;
  Operation operation;
};

constexpr std::array maintenance{
    Known{system(0, 7, 6, 1), Operation::invalidate},
    Known{system(0, 7, 6, 2), Operation::invalidate_set},
    Known{system(0, 7, 10, 2), Operation::clean_set},
    Known{system(0, 7, 14, 2), Operation::clean_invalidate_set},
    Known{system(3, 7, 4, 1), Operation::zero},
    Known{system(3, 7, 10, 1), Operation::clean},
    Known{system(3, 7, 12, 1), Operation::clean},
    Known{system(3, 7, 11, 1), Operation::clean_to_instructions},
    Known{system(3, 7, 14, 1), Operation::clean_and_invalidate},
    Known{system(0, 7, 1, 0), Operation::drop_all_instructions},
    Known{system(0, 7, 5, 0), Operation::drop_instructions},
    Known{system(3, 7, 5, 1), Operation::invalidate_instruction},
};

/// TLBI: CRn 8; CRm 3 and 0 reach every core, 7 and 4 this one.
Operation translation_dropped(std::uint32_t word) {
  const unsigned op1 = (word >> 16U) & 7U;
  const unsigned crm = (word >> 8U) & 15U;
  const unsigned op2 = (word >> 5U) & 7U;
  const bool everywhere = crm < 4;
  const bool whole = op2 == 0 || (op1 == 4 && (op2 == 4 || op2 == 6));
  if (whole && (crm == 3 || crm == 7)) {
    return everywhere ? Operation::drop_all_translations : Operation::drop_translations;
  }
  return everywhere ? Operation::forget_address_anywhere : Operation::forget_address;
}

Operation operation_of(std::uint32_t word) {
  const std::uint32_t without_argument = word & ~0x1FU;
  for (const Known& each : maintenance) {
    if (each.word == without_argument) return each.operation;
  }
  if ((word & 0xFFF8'F000U) == 0xD508'8000U) return translation_dropped(word);
  if ((word & 0xFFFF'F0FFU) == 0xD503'309FU) return Operation::completion_barrier;
  if ((word & 0xFFFF'F0FFU) == 0xD503'30BFU) return Operation::memory_barrier;
  const std::uint32_t crn = (word >> 12U) & 15U;
  const bool writes_register = (word & 0xFFF8'0000U) == 0xD518'0000U;
  // CRn 1: SCTLR, HCR; 2: TTBR, TCR, VTTBR, VTCR; 10: MAIR
  return writes_register && (crn == 1 || crn == 2 || crn == 10) ? Operation::controls
                                                                : Operation::other;
}

/// Whose translations a TLBI drops: by its op1, and at EL2 its op2.
Regime regime_of(std::uint32_t word) {
  const unsigned op1 = (word >> 16U) & 7U;
  const unsigned op2 = (word >> 5U) & 7U;
  if (op1 == 6) return Regime::el3;
  const bool el2 = op1 == 4 && (op2 == 0 || op2 == 1 || op2 == 5) && ((word >> 8U) & 3U) == 3;
  return el2 ? Regime::el2 : Regime::el10;
}

/// The bit of HCR_EL2 that traps an operation below EL2; 64: none.
unsigned trap_bit(Operation operation) {
  switch (operation) {
    case Operation::invalidate_set:
    case Operation::clean_set:
    case Operation::clean_invalidate_set:
      return 22;  // TSW
    case Operation::clean:
    case Operation::invalidate:
    case Operation::clean_and_invalidate:
      return 23;  // TPC
    case Operation::clean_to_instructions:
    case Operation::invalidate_instruction:
    case Operation::drop_instructions:
    case Operation::drop_all_instructions:
      return 24;  // TPU
    case Operation::drop_translations:
    case Operation::drop_all_translations:
    case Operation::forget_address:
    case Operation::forget_address_anywhere:
      return 25;  // TTLB
    case Operation::zero:
      return 28;  // TDZ
    default:
      return 64;
  }
}

}  // namespace

Instruction decoded(std::uint32_t word) {
  return {.operation = operation_of(word), .argument = word & 0x1FU, .regime = regime_of(word)};
}

bool is_executed(Operation operation, unsigned level, const Controls& controls) {
  const unsigned trap = trap_bit(operation);
  if (level >= 2 || trap == 64) return true;
  if (level == 0) {
    const unsigned permitted = operation == Operation::zero ? 14 : 26;  // DZE, UCI
    if (((controls.sctlr >> permitted) & 1U) == 0) return false;
  }
  return ((controls.hcr >> trap) & 1U) == 0;
}

}  // namespace latenz::coherence
