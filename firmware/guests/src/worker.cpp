// SPDX-License-Identifier: Apache-2.0
// A partition that does nothing but answer its interrupts.
#include "bottom_handlers.hpp"
#include "cpu.hpp"

extern "C" [[noreturn]] void firmware_main() {
  latenz::guests::start_bottom_handlers();
  while (true) latenz::firmware::Cpu::wait_for_interrupt();
}
