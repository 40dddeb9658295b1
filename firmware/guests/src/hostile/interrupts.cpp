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
  const bool of_timer = Interrupts::number(acknowledged) == GuestMachine::virtual_timer_interrupt;
  if (manners == Manners::stops_timer && of_timer) firmware::VirtualTimer::control(0);
  if (manners != Manners::never_ends) Interrupts::end(acknowledged);
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
