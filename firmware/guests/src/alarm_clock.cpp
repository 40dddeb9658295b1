// SPDX-License-Identifier: Apache-2.0
// A partition that has the board's real-time clock for itself (PL031, Arm DDI 0224), and the
// clock's interrupt, which may be a source's. Each bottom handler sets the next alarm, a second
// ahead. Its progress is the number of alarms that it found raised.
#include "alarm_clock.hpp"

#include "cpu.hpp"
#include "guest.hpp"
#include "register.hpp"

namespace latenz::guests {
namespace {

constexpr std::uintptr_t clock = 0x0901'0000;  // on QEMU's virt
constexpr Interrupts::Id clock_interrupt = 34;
using Seconds = firmware::Register<clock + 0x00>;
using Match = firmware::Register<clock + 0x04>;
using Enable = firmware::Register<clock + 0x10>;
using Raised = firmware::Register<clock + 0x18>;
using Clear = firmware::Register<clock + 0x1C>;

constexpr std::uintptr_t nobodys = 0x0A00'0000;

void set_alarm() {
  Clear::write(1);
  Match::write(Seconds::read() + 1);
}

void count_alarm() {
  report().progress = report().progress + 1;
  if (alarms_to_fault != 0 && report().progress % alarms_to_fault == 0) {
    firmware::Register<nobodys>::write(0);
  }
  set_alarm();
}

void handle_interrupt() {
  const auto acknowledged = Interrupts::acknowledge();
  if (Interrupts::spurious(acknowledged)) return;
  if (Raised::read() != 0) count_alarm();
  Interrupts::end(acknowledged);
}

}  // namespace

extern "C" {
void (*interrupt_handler)() = handle_interrupt;  // for vectors.S
}

extern "C" [[noreturn]] void firmware_main() {
  set_alarm();
  Enable::write(1);
  Interrupts::start(clock_interrupt);
  firmware::Cpu::enable_interrupts();
  begin();
  while (true) firmware::Cpu::wait_for_interrupt();
}

}  // namespace latenz::guests
