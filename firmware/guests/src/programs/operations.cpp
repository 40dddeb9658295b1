// SPDX-License-Identifier: Apache-2.0
// What programs can do, by the numbers that bench/hypervisor_programs.py has.
#include <array>
#include <cstdint>

#include "../hostile/access.hpp"
#include "../hostile/gic_registers.hpp"
#include "cpu.hpp"
#include "guest.hpp"
#include "program.hpp"

namespace latenz::guests {
namespace {

using firmware::Cpu;
using firmware::VirtualTimer;

constexpr std::uint64_t distributor = GuestMachine::distributor;
constexpr std::uint64_t interface = GuestMachine::cpu_interface;

volatile bool ends = true;

void nothing(const Operation& /*own*/) {}

void pause(const Operation& own) { Cpu::pause(own.value % 4096); }

/// `place`: offset; its lowest bits choose a byte, half a word, a word.
void write_distributor(const Operation& own) {
  const std::uint64_t address = distributor_register(own.place % 0x1000U);
  if (own.place % 4 == 1) {
    write8(address, own.value);
  } else if (own.place % 4 == 2) {
    write16(address, own.value);
  } else {
    write32(address & ~std::uint64_t{3}, own.value);
  }
}

void read_distributor(const Operation& own) { read32(distributor_register(own.place & 0xFFCU)); }

/// `place`: which register of a GICv3, or its offset.
void write_interface(const Operation& own) {
  if (!has_gicv3()) {
    write32(interface + (own.place & 0x1FFCU), own.value);
    return;
  }
  constexpr auto registers = std::to_array<void (*)(std::uint32_t)>({
      Interface::control,
      Interface::mask,
      Interface::binary_point,
      Interface::end,
      Interface::deactivate,
      [](std::uint32_t value) { Interface::active_priorities(0, value); },
      [](std::uint32_t value) { Interface::active_priorities(1, value); },
  });
  registers[own.place / 4 % registers.size()](own.value);
}

void read_interface(const Operation& own) {
  has_gicv3() ? Interface::acknowledge() : read32(interface + (own.place & 0x1FFCU));
}

void acknowledge_and_end(const Operation& /*own*/) { Interrupts::end(Interrupts::acknowledge()); }

/// `value`: the number, and the filter and targets of GICD_SGIR.
void signal_itself(const Operation& own) { Interface::signal(own.value); }

/// `value`: how many ticks ahead, none if it is odd; `place`: the control register.
void set_timer(const Operation& own) {
  VirtualTimer::compare(own.value % 2 == 0 ? VirtualTimer::count() + own.value : 0);
  VirtualTimer::control(own.place % 4U);
}

/// What would end the partition for good is no call here: CPU_OFF and SYSTEM_OFF.
bool is_final(const Operation& own) { return own.value == 0x8400'0002 || own.value == 0x8400'0008; }

/// `value`: the function; `place`: all arguments.
void call_hypervisor(const Operation& own) {
  if (!is_final(own)) call(own.value, own.place, own.place, own.place);
}

void call_secure_monitor(const Operation& own) {
  if (is_final(own)) return;
  register std::uint64_t x0 asm("x0") = own.value;
  register std::uint64_t x1 asm("x1") = own.place;
  asm volatile("smc #0" : "+r"(x0), "+r"(x1)::"x2", "x3", "memory");
}

/// Registers that are not the guest's, or do not exist.
constexpr auto system_registers = std::to_array<void (*)(std::uint64_t)>({
    [](std::uint64_t value) { asm volatile("msr dbgbvr0_el1, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("mrs %0, mdscr_el1"
                                           : "+r"(value)); },
    [](std::uint64_t value) { asm volatile("msr pmcr_el0, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("mrs %0, pmccntr_el0"
                                           : "+r"(value)); },
    [](std::uint64_t value) { asm volatile("msr actlr_el1, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("msr cntp_cval_el0, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("msr cntp_ctl_el0, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("dc cisw, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("dc isw, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("msr s3_0_c12_c11_7, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("msr s3_1_c15_c2_1, %0" ::"r"(value)); },
    [](std::uint64_t value) { asm volatile("msr vttbr_el2, %0" ::"r"(value)); },
});

/// `place`: which; `value`: what is in the general register.
void use_system_register(const Operation& own) {
  system_registers[own.place % system_registers.size()](own.value);
}

/// `place` and `value`: the address; an even number of times reads, an odd one writes.
void access(const Operation& own) {
  const std::uint64_t address = (std::uint64_t{own.place} << 32U) | own.value;
  own.times % 2 == 0 ? read32(address) : write32(address);
}

void write_console(const Operation& own) { write32(GuestMachine::console, own.value); }

void read_console(const Operation& /*own*/) { read32(GuestMachine::console + 0x18); }

void sleep(const Operation& /*own*/) { Cpu::wait_for_interrupt(); }

/// Handlers stay masked: they do not nest. They have the other stack pointer.
void unmask() {
  std::uint64_t stack = 0;
  asm volatile("mrs %0, spsel" : "=r"(stack));
  if (stack == 0) Cpu::enable_interrupts();
}

void mask(const Operation& own) { own.place % 2 == 0 ? unmask() : Cpu::disable_interrupts(); }

/// As a guest that has just started, whatever was done to its interrupts.
void afresh(const Operation& /*own*/) {
  begin_afresh();
  unmask();
}

void behave(const Operation& own) { ends = own.place % 2 == 0; }

/// `value`: ticks of the window.
void await(const Operation& own) {
  const Window window = window_now();
  const std::uint64_t ticks = window.end_tick - own.value;
  while (!is_over(window) && VirtualTimer::count() < ticks) continue;
}

/// Its own timer's interrupt, which is there again as soon as it was ended.
void take_timer_again(const Operation& /*own*/) {
  VirtualTimer::compare(0);
  VirtualTimer::control(0);
  VirtualTimer::control(1);
  Interrupts::end(Interrupts::acknowledge());
}

/// More than there are list registers.
void signal_all(const Operation& /*own*/) {
  for (std::uint32_t number = 0; number < 16; ++number) Interface::signal_itself(number);
}

constexpr auto operations = std::to_array<void (*)(const Operation&)>({
    nothing,              // 0
    afresh,               // 1
    pause,                // 2
    write_distributor,    // 3
    read_distributor,     // 4
    write_interface,      // 5
    read_interface,       // 6
    acknowledge_and_end,  // 7
    signal_itself,        // 8
    set_timer,            // 9
    call_hypervisor,      // 10
    call_secure_monitor,  // 11
    use_system_register,  // 12
    access,               // 13
    write_console,        // 14
    read_console,         // 15
    sleep,                // 16
    mask,                 // 17
    behave,               // 18
    await,                // 19
    take_timer_again,     // 20
    signal_all,           // 21
});

}  // namespace

bool ends_interrupts() { return ends; }

/// Everything active is deactivated by its number, which the running priority does not hinder.
void begin_afresh() {
  constexpr std::uint32_t software_generated = 16;
  VirtualTimer::control(0);
  ends = true;
  Interface::control(Interface::enable | Interface::end_only_drops_priority);
  Interface::active_priorities(0, 0);
  Interface::active_priorities(1, 0);
  const InformationPage& known = information();
  for (std::uint32_t number = 0; number < software_generated; ++number) {
    Interface::deactivate(number);
  }
  Interface::deactivate(GuestMachine::virtual_timer_interrupt);
  for (std::uint32_t i = 0; i < known.sources; ++i) {
    Interface::deactivate(known.source[i].interrupt);
  }
  Interface::control(Interface::enable);
  for (std::uint32_t i = 0; i < known.sources; ++i) Interrupts::start(known.source[i].interrupt);
  Interrupts::start(GuestMachine::virtual_timer_interrupt);
}

void execute(const Operation* first, std::size_t count, const Window& window) {
  for (const Operation* each = first; each != first + count; ++each) {
    const auto operate = operations[each->kind % operations.size()];
    for (std::uint32_t i = 0; i <= each->times && !is_over(window); ++i) operate(*each);
  }
}

}  // namespace latenz::guests
