// SPDX-License-Identifier: Apache-2.0
// Where assembly calls C++.
#include "aarch64/own_translation.hpp"
#include "aarch64/system_registers.hpp"
#include "hypervisor.hpp"
#include "latenz/text.hpp"

namespace latenz::hypervisor {

extern "C" {

extern const std::uint8_t stacks[];  // image.ld

[[noreturn]] void hypervisor_main() { hypervisor.begin(); }

[[noreturn]] void secondary_main(std::uint32_t cpu) {
  OwnTranslation::switch_on();
  Hypervisor::begin_secondary(cpu);
}

Vcpu* on_guest_trap(std::uint64_t entered, Processor* processor) {
  return hypervisor.trap(*processor, entered);
}

Vcpu* on_guest_error(std::uint64_t entered, Processor* processor) {
  return hypervisor.error(*processor, entered);
}

/// A fault of the hypervisor itself: nothing can be relied on any more. In a page below a stack it
/// is that stack which has no room left.
[[noreturn]] void on_own_fault(std::uint64_t vector, std::uint64_t syndrome, std::uint64_t place,
                               std::uint64_t address) {
  constexpr std::uint64_t data_abort = 0x25;  // ESR_EL2.EC: taken from EL2 itself
  const std::uint64_t above = address - reinterpret_cast<std::uint64_t>(stacks);
  Text<100> told;
  if (syndrome >> 26U == data_abort && above < Processor::most * stack_distance &&
      above % stack_distance < TranslationTable::page) {
    told.add("stack of CPU ").add(above / stack_distance).add(" overflows at ").add_hex(place);
    fail(told.view());
  }
  told.add("fault, vector ").add(vector).add(", syndrome ").add_hex(syndrome);
  fail(told.add(", at ").add_hex(place).add(", address ").add_hex(address).view());
}
}

}  // namespace latenz::hypervisor
