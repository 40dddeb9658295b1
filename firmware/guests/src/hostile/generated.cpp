// SPDX-License-Identifier: Apache-2.0
#include "generated.hpp"

extern "C" {
extern std::uint32_t generated_instruction;                // generated.S
void run_generated(latenz::guests::Registers& registers);  // generated.S
}

namespace latenz::guests {

void run_instruction(std::uint32_t instruction, Registers& values) {
  auto* const place = static_cast<volatile std::uint32_t*>(&generated_instruction);
  if (*place != instruction) {
    *place = instruction;
    asm volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(place) : "memory");
  }
  run_generated(values);
}

void run_instruction(std::uint32_t instruction) {
  Registers nothing{};
  run_instruction(instruction, nothing);
}

}  // namespace latenz::guests
