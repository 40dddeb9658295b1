// SPDX-License-Identifier: Apache-2.0
// What changes in SPSR when an instruction of a 32-bit program is stepped over (Arm Architecture
// Reference Manual, ITSTATE). Freestanding.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

/// Bytes of an instruction that trapped, by ESR_EL2.IL. Faults that tell nothing have IL set.
constexpr std::uint64_t instruction_bytes(std::uint64_t syndrome) {
  constexpr std::uint64_t is_32_bits_long = 1ULL << 25U;
  return (syndrome & is_32_bits_long) != 0 ? 4 : 2;
}

/// SPSR behind the instruction: in a Thumb program's IT block the next condition holds.
constexpr std::uint64_t behind_instruction(std::uint64_t state) {
  constexpr std::uint64_t aarch32 = 1ULL << 4U;
  constexpr std::uint64_t thumb = 1ULL << 5U;
  constexpr std::uint64_t it_bits = 0x0600'FC00;  // IT[1:0] at 26:25, IT[7:2] at 15:10
  if ((state & (aarch32 | thumb)) != (aarch32 | thumb)) return state;
  const std::uint64_t it = ((state >> 25U) & 3U) | ((state >> 8U) & 0xFCU);
  const std::uint64_t next = (it & 7U) == 0 ? 0 : (it & 0xE0U) | ((it << 1U) & 0x1FU);
  return (state & ~it_bits) | ((next & 3U) << 25U) | ((next & 0xFCU) << 8U);
}

}  // namespace latenz::hypervisor
