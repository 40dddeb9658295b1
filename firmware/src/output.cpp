// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "cpu.hpp"

namespace latenz::firmware {
namespace {

bool finishing = false;

[[noreturn]] void halt() {
  while (true) Cpu::wait_for_interrupt();
}

}  // namespace

void fail(std::string_view reason) {
  Cpu::disable_interrupts();
  if (finishing) halt();  // the machine cannot be switched off, or the console faults
  finishing = true;
  output().text(FrameKind::fault, reason);
  output().end({});
  Board::Supervision::enter(ControlState::fault);
  finish();
}

void finish() {
  finishing = true;
  Board::power_off();
  halt();
}

}  // namespace latenz::firmware
