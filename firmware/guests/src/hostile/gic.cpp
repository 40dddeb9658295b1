// SPDX-License-Identifier: Apache-2.0
// Abuse of the interrupt controller.
#include <array>
#include <cstdint>

#include "access.hpp"
#include "attack.hpp"
#include "cpu.hpp"
#include "gic_registers.hpp"
#include "guest.hpp"
#include "interrupts.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint64_t distributor = GuestMachine::distributor;
constexpr std::uint32_t interrupts = 1024;

/// Registers of the distributor with one bit for each interrupt.
struct Bits {
  static constexpr std::uint64_t group = 0x080;
  static constexpr std::uint64_t set_enable = 0x100;
  static constexpr std::uint64_t clear_enable = 0x180;
  static constexpr std::uint64_t set_pending = 0x200;
  static constexpr std::uint64_t clear_pending = 0x280;
  static constexpr std::uint64_t set_active = 0x300;
  static constexpr std::uint64_t clear_active = 0x380;
  static constexpr std::uint32_t registers = interrupts / 32;
};

template <std::uint64_t bits>
void write_all(std::uint32_t step) {
  write32(bank_register(bits, step));
}

/// With the interrupts that come by it.
template <std::uint64_t bits>
void write_each(std::uint32_t step) {
  firmware::Cpu::enable_interrupts();
  write32(bank_register(Bits::set_enable, step / 32), 1U << (step % 32));
  write32(bank_register(bits, step / 32), 1U << (step % 32));
}

/// The virtual timer's own, and that of the hypervisor's timer and of the maintenance interrupt.
void toggle_private(std::uint32_t step) {
  constexpr std::array<std::uint32_t, 6> own = {25, 26, 27, 28, 29, 30};
  const std::uint32_t bit = 1U << own[step % own.size()];
  for (const std::uint64_t bits : {Bits::set_active, Bits::set_pending, Bits::clear_active,
                                   Bits::clear_pending, Bits::clear_enable, Bits::set_enable}) {
    write32(bank_register(bits, 0), bit);
  }
}

/// All filters, all sets of targets, all numbers.
void software_interrupts(std::uint32_t step) {
  const std::uint32_t filter = step >> 12U;
  const std::uint32_t targets = (step >> 4U) & 0xFFU;
  Interface::signal((filter << 24U) | (targets << 16U) | (step & 0xFU));
}

void software_interrupt_storm(std::uint32_t /*step*/) {
  firmware::Cpu::enable_interrupts();
  write32(bank_register(Bits::set_enable, 0), 0xFFFF);
  while (true) {
    for (std::uint32_t number = 0; number < 16; ++number) Interface::signal_itself(number);
  }
}

void pend_itself_for_ever(std::uint32_t /*step*/) {
  firmware::Cpu::enable_interrupts();
  const std::uint32_t number = information().source[0].interrupt;
  while (true) {
    write32(bank_register(Bits::set_pending, number / 32), 1U << (number % 32));
  }
}

constexpr auto accesses = std::to_array<Access>({
    read8,
    read16,
    read32,
    read64,
    read_pair,
    read_and_step,
    [](std::uint64_t address) { write8(address); },
    [](std::uint64_t address) { write16(address); },
    [](std::uint64_t address) { write64(address); },
    [](std::uint64_t address) { read32(address + 1); },
    [](std::uint64_t address) { write16(address + 1); },
    write_pair,
    write_and_step,
    exchange,
    read_as_user,
    write_as_user,
    zero,
});

/// Registers of the distributor, each in another of the ways.
void access_distributor(std::uint32_t step) {
  accesses[step % accesses.size()](word(distributor, std::uint64_t{6} * step));
}

/// Some of the redistributor's, where there is no page of the CPU interface: those are emulated,
/// and most of the accesses restart the partition.
void access_interface(std::uint32_t step) {
  constexpr std::uint32_t of_redistributor = 0x100;
  if (has_gicv3() && step >= of_redistributor) return;
  const std::uint64_t begin =
      has_gicv3() ? GuestMachine::redistributor + 0x1'0000 : GuestMachine::cpu_interface;
  accesses[step % accesses.size()](word(begin, step));
}

/// Its one page, and a little behind.
constexpr std::uint32_t distributor_words = 0x400 + 16;

void write_whole_distributor(std::uint32_t step) { write32(word(distributor, step)); }

void read_whole_distributor(std::uint32_t step) { read32(word(distributor, step)); }

/// Of what was never acknowledged, with all senders; in both groups.
void end_unacknowledged(std::uint32_t step) { Interface::end(step); }

void deactivate_unacknowledged(std::uint32_t step) {
  Interface::control(Interface::enable | Interface::end_only_drops_priority);
  Interface::deactivate(step);
}

void toggle_interface(std::uint32_t step) {
  Interface::control(step);
  Interface::control(Interface::enable);
}

void write_priorities_of_interface(std::uint32_t step) {
  Interface::mask(step & 0xFFU);
  Interface::binary_point((step >> 8U) & 7U);
  Interface::active_priorities(step % 4, ~0U);
}

void acknowledge(std::uint32_t /*step*/) { Interface::acknowledge(); }

void take_interrupts(Manners manners) {
  behave(manners);
  firmware::Cpu::enable_interrupts();
  while (true) firmware::Cpu::wait_for_interrupt();
}

void toggle_distributor(std::uint32_t step) { write32(distributor, step % 4); }

constexpr auto attacks = std::to_array<Attack>({
    {"gic-disable-all", Bits::registers, write_all<Bits::clear_enable>},
    {"gic-enable-all", Bits::registers, write_all<Bits::set_enable>},
    {"gic-enable-each", interrupts, write_each<Bits::set_enable>},
    {"gic-pend-all", Bits::registers, write_all<Bits::set_pending>},
    {"gic-pend-each", interrupts, write_each<Bits::set_pending>},
    {"gic-clear-pending", Bits::registers, write_all<Bits::clear_pending>},
    {"gic-activate-all", Bits::registers, write_all<Bits::set_active>},
    {"gic-activate-each", interrupts, write_each<Bits::set_active>},
    {"gic-deactivate-all", Bits::registers, write_all<Bits::clear_active>},
    {"gic-groups", Bits::registers, write_all<Bits::group>},
    {"gic-private", 6, toggle_private},
    {"gic-priorities", interrupts,
     [](std::uint32_t step) { write8(distributor_register(0x400 + step), 255 - (step % 256)); }},
    {"gic-targets", interrupts,
     [](std::uint32_t step) { write8(distributor + 0x800 + step, 0xFF); }},
    {"gic-configuration", interrupts / 16,
     [](std::uint32_t step) { write32(bank_register(0xC00, step), step * 0x5555'5555); }},
    {"gic-software-interrupts", 4 * 256 * 16, software_interrupts},
    {"gic-software-pending", 16,
     [](std::uint32_t step) { write32(word(distributor + 0xF10, step)); }},
    {"gic-software-storm", 1, software_interrupt_storm},
    {"gic-pend-storm", 1, pend_itself_for_ever},
    {"gic-distributor-accesses", distributor_words / 6, access_distributor},
    {"gic-distributor-write", distributor_words, write_whole_distributor},
    {"gic-distributor-read", distributor_words, read_whole_distributor},
    {"gic-distributor-toggle", 1000, toggle_distributor},
    {"gic-interface-accesses", 0x800, access_interface},
    {"gic-interface-toggle", 0x800, toggle_interface},
    {"gic-interface-priorities", 0x800, write_priorities_of_interface},
    {"gic-end-unacknowledged", 0x2000, end_unacknowledged},
    {"gic-deactivate", 0x2000, deactivate_unacknowledged},
    {"gic-acknowledge", 10'000, acknowledge},
    {"gic-never-ends", 1, [](std::uint32_t /*step*/) { take_interrupts(Manners::never_ends); }},
    {"gic-endless-handler", 1, [](std::uint32_t /*step*/) { take_interrupts(Manners::endless); }},
});

}  // namespace

std::span<const Attack> gic_attacks() { return attacks; }

}  // namespace latenz::guests
