// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "cpu.hpp"

namespace latenz::firmware {

void fail(std::string_view reason) {
  Cpu::disable_interrupts();
  output().text(FrameKind::fault, reason);
  output().end({});
  finish();
}

void finish() {
  Board::power_off();
  while (true) Cpu::wait_for_interrupt();
}

}  // namespace latenz::firmware
