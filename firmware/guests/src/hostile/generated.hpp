// SPDX-License-Identifier: Apache-2.0
// Instructions that the compiler has no words for, or that nobody knew before.
#pragma once

#include <array>
#include <cstdint>

namespace latenz::guests {

/// Values of x0 to x15.
using Registers = std::array<std::uint64_t, 16>;

/// Executes one instruction with these registers, and puts back everything that it may have
/// changed in the general ones; `values` become what it left in them.
void run_instruction(std::uint32_t instruction, Registers& values);

/// The same with nothing in the registers.
void run_instruction(std::uint32_t instruction);

}  // namespace latenz::guests
