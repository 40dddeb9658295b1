// SPDX-License-Identifier: Apache-2.0
// Attacks on time: to make the hypervisor work in the attacker's interposed jobs, at its slot's
// end, or in whatever follows. The attacker lets its source's interrupts wait, so that its jobs
// never end by themselves.
#include <array>
#include <cstdint>

#include "access.hpp"
#include "attack.hpp"
#include "cpu.hpp"
#include "gic_registers.hpp"
#include "guest.hpp"

namespace latenz::guests {
namespace {

using firmware::Cpu;
using firmware::VirtualTimer;

constexpr std::uint64_t distributor = GuestMachine::distributor;
constexpr std::uint64_t interface = GuestMachine::cpu_interface;
constexpr std::uint32_t set_enable = 0x100;
constexpr std::uint32_t set_pending = 0x200;
constexpr std::uint32_t priorities = 0x400;
constexpr std::uint32_t software_generated_numbers = 16;
constexpr std::uint32_t usual_priority = 0x80;

/// Its source's interrupts do not pass the mask, those that have been made more urgent do.
void let_only_urgent_ones_pass() {
  Cpu::disable_interrupts();
  Interface::mask(usual_priority);
}

/// More so than the mask.
void make_urgent(std::uint32_t number) { write8(distributor_register(priorities + number), 0); }

[[noreturn]] void end_own_timer_by_registers() {
  asm volatile(
      "1: mrs x9, s3_0_c12_c12_0\n"
      " msr s3_0_c12_c12_1, x9\n"
      " msr cntv_ctl_el0, xzr\n"
      " msr cntv_ctl_el0, %0\n"
      " b 1b" ::"r"(std::uint64_t{1})
      : "x9", "memory");
  __builtin_unreachable();
}

/// Its own timer's interrupt, which is there again as soon as it was ended: each time the
/// hypervisor is entered, for five instructions of the guest.
void end_own_timer_for_ever(std::uint32_t /*step*/) {
  let_only_urgent_ones_pass();
  make_urgent(GuestMachine::virtual_timer_interrupt);
  VirtualTimer::compare(0);
  VirtualTimer::control(1);
  if (has_gicv3()) end_own_timer_by_registers();
  asm volatile(
      "1: ldr w9, [%0, #0x0C]\n"
      " str w9, [%0, #0x10]\n"
      // An emulator looks at a level again when it changes.
      " msr cntv_ctl_el0, xzr\n"
      " msr cntv_ctl_el0, %1\n"
      " b 1b" ::"r"(interface),
      "r"(std::uint64_t{1})
      : "x9", "memory");
}

void signal_all_to_itself() {
  for (std::uint32_t number = 0; number < software_generated_numbers; ++number) {
    Interface::signal_itself(number);
  }
  for (std::uint32_t bank = 1; bank < 4; ++bank) write32(bank_register(set_pending, bank), ~0U);
}

void take_128_by_memory() {
  for (std::uint32_t i = 0; i < 128; ++i) {
    asm volatile(
        "ldr w9, [%0, #0x0C]\n"
        " str w9, [%0, #0x10]" ::"r"(interface)
        : "x9", "memory");
  }
}

void take_128_by_registers() {
  for (std::uint32_t i = 0; i < 128; ++i) {
    asm volatile(
        "mrs x9, s3_0_c12_c12_0\n"
        " msr s3_0_c12_c12_1, x9" ::
            : "x9", "memory");
  }
}

/// More interrupts than the hardware has list registers: whenever those have run empty, the
/// hypervisor is entered to fill them.
void run_out_of_list_registers_for_ever(std::uint32_t /*step*/) {
  let_only_urgent_ones_pass();
  for (std::uint32_t number = 0; number < software_generated_numbers; ++number) {
    make_urgent(number);
  }
  while (true) {
    signal_all_to_itself();
    has_gicv3() ? take_128_by_registers() : take_128_by_memory();
  }
}

/// All that it can signal to itself waits, and nothing is taken: the hypervisor looks through it at
/// each write, and whenever the guest is switched to.
void let_distributor_look_for_ever(std::uint32_t /*step*/) {
  Cpu::disable_interrupts();
  Interface::mask(0);  // nothing passes
  for (std::uint32_t bank = 0; bank < 4; ++bank) write32(bank_register(set_enable, bank), ~0U);
  for (std::uint32_t number = 0; number < 128; ++number) {
    write8(distributor_register(priorities + number), 255 - number);
  }
  signal_all_to_itself();
  const std::uint32_t on = has_gicv3() ? 2 : 1;
  while (true) {
    write32(distributor, on);
    write32(distributor, 0);
  }
}

/// When its slot begins: others have run for long.
std::uint64_t next_slot() {
  const std::uint64_t long_ticks = information().counter_hz / 10'000;
  std::uint64_t before = VirtualTimer::count();
  while (true) {
    const std::uint64_t at = VirtualTimer::count();
    if (at - before > long_ticks) return at;
    before = at;
  }
}

/// As late in its slot as it can, when as many of its interrupts wait as the hypervisor has room
/// for.
void switch_off_with_full_queue(std::uint32_t /*step*/) {
  constexpr std::int64_t room = 1024;
  constexpr std::uint64_t pending = 5;
  const std::uint64_t almost_slot = information().counter_hz / 1'000'000 * 499;
  Cpu::disable_interrupts();
  while (call(Hypercall::statistics, pending) < room) next_slot();
  const std::uint64_t begin = next_slot();
  while (VirtualTimer::count() - begin < almost_slot) continue;
  constexpr std::uint64_t system_off = 0x8400'0008;
  call(system_off);
}

constexpr auto attacks = std::to_array<Attack>({
    {"timer-in-job", 1, end_own_timer_for_ever},
    {"maintenance-in-job", 1, run_out_of_list_registers_for_ever},
    {"distributor-flood", 1, let_distributor_look_for_ever},
    {"off-with-full-queue", 1, switch_off_with_full_queue},
});

}  // namespace

std::span<const Attack> job_attacks() { return attacks; }

}  // namespace latenz::guests
