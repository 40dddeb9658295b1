// SPDX-License-Identifier: Apache-2.0
#include "interrupts.hpp"

#include "cpu.hpp"
#include "guest.hpp"

namespace latenz::guests {
namespace {

volatile Manners manners_now = Manners::good;

void handle_interrupt() {
  const auto acknowledged = Interrupts::acknowledge();
  const Manners manners = manners_now;
  while (manners == Manners::endless) firmware::Cpu::pause(1000);
  if (manners == Manners::good) Interrupts::end(acknowledged);
}

}  // namespace

extern "C" {
void (*interrupt_handler)() = handle_interrupt;  // for the firmware's vectors.S
}

void start_interrupts() {
  const InformationPage& known = information();
  for (std::uint32_t i = 0; i < known.sources; ++i) Interrupts::start(known.source[i].interrupt);
  Interrupts::start(GuestMachine::virtual_timer_interrupt);
}

void behave(Manners manners) { manners_now = manners; }

}  // namespace latenz::guests
