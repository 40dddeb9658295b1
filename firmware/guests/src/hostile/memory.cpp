// SPDX-License-Identifier: Apache-2.0
// Ways out of a partition's memory.
#include <array>
#include <cstddef>
#include <cstdint>

#include "access.hpp"
#include "attack.hpp"
#include "guest.hpp"
#include "translation.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint64_t page = 0x1000;
constexpr std::uint64_t block = 0x20'0000;

/// Where this partition has nothing: first what lies around its memory, then what lies there
/// physically on one board or the other, as if nothing were translated.
constexpr std::uint32_t around = 40;
constexpr std::array<std::uint64_t, 44> board = {
    0x0,             // flash or on-chip boot memory
    0x0803'0000,     // virt: virtual interface control of the GIC
    0x0804'0000,     // virt: virtual CPU interface
    0x0802'0000,     // virt: interrupt translation
    0x0802'F000,     //
    0x0900'1000,     // behind the console
    0x0901'0000,     // virt: clock
    0x0902'0000,     // virt: firmware configuration
    0x0903'0000,     // virt: general purpose pins
    0x0904'0000,     // virt: second UART
    0x0A00'0000,     // virt: devices of virtio
    0x0B00'3000,     // behind the loader's page
    0x1000'0000,     // virt: PCI
    0x3EFF'0000,     // virt: PCI ports
    0x3FFF'F000,     //
    0x4010'0000,     // images and the hypervisor, if not this partition's
    0x4020'0000,     //
    0x4040'0000,     // configuration of the hypervisor
    0x4080'0000,     //
    0x5000'0000,     //
    0x6000'0000,     //
    0x7FFF'F000,     //
    0x8000'0000,     //
    0xC000'0000,     //
    0xF901'0000,     // zcu102: GIC
    0xF902'0000,     //
    0xF902'F000,     //
    0xF904'0000,     //
    0xF906'0000,     //
    0xFD1A'0000,     // zcu102: clocks and resets
    0xFD5C'0000,     // zcu102: application processors
    0xFD61'0000,     // zcu102: protection units
    0xFD80'0000,     // zcu102: memory management unit of devices
    0xFF00'0000,     // zcu102: UARTs
    0xFF01'0000,     //
    0xFF11'0000,     // zcu102: timers
    0xFF5E'0000,     // zcu102: clocks and resets of the low power domain
    0xFF9A'0000,     // zcu102: real-time processors
    0xFFD8'0000,     // zcu102: power management
    0xFFFC'0000,     // zcu102: on-chip memory
    0x1'0000'0000,   //
    0x40'1000'0000,  // virt: PCI configuration
    0x80'0000'0000,  // virt: PCI windows
    0xFF'FFFF'F000,  // the last page of 40 bits
};
constexpr std::uint32_t foreign_addresses = around + board.size();

bool is_own(std::uint64_t address) {
  const InformationPage& known = information();
  return address - known.memory_begin < known.memory_size;
}

/// The step-th address that is not this partition's; one behind its memory if that is its own.
std::uint64_t foreign(std::uint32_t step) {
  const InformationPage& known = information();
  const std::uint64_t end = known.memory_begin + known.memory_size;
  if (step == 0) return known.memory_begin - 16;
  if (step < 8) return end + ((step - 1) * page);
  if (step < around) return end + (std::uint64_t{step - 8} * block);
  const std::uint64_t address = board[(step - around) % board.size()];
  return is_own(address) ? end : address;
}

constexpr auto accesses = std::to_array<Access>({
    [](std::uint64_t address) { write8(address); },
    [](std::uint64_t address) { write16(address + 1); },
    [](std::uint64_t address) { write64(address); },
    [](std::uint64_t address) { read64(address + 3); },
    read8,
    read_pair,
    write_pair,
    read_and_step,
    write_and_step,
    exchange,
    read_as_user,
    write_as_user,
    prefetch,
    zero,
    clean_and_invalidate,
    execute,
});
constexpr std::uint32_t mapped_stride = 5;  // of foreign addresses: each access fails at any
constexpr std::uint32_t kinds = accesses.size();
constexpr std::uint32_t mapped_steps = foreign_addresses / mapped_stride * kinds;

/// With translation of its own on, memory is cached and may be accessed in every way.
void access_mapped(std::uint32_t step) {
  Translation::enable();
  accesses[step % kinds](foreign(step / kinds * mapped_stride));
  Translation::disable();
}

/// Accesses of which one half is within the memory and one is not.
void across_the_end(std::uint32_t step) {
  const std::uint64_t end = information().memory_begin + information().memory_size;
  Translation::enable();
  accesses[step % kinds](end - 1 - (step / kinds));
  Translation::disable();
}

/// Addresses of pristine images: those that the loader copies, and all around.
std::uint64_t stored(std::uint32_t step) {
  if (step < information().copies) return information().copy[step].from;
  return GuestMachine::store + 0x4000'0000 + (std::uint64_t{step % 32} * block);
}

/// More bits than guest physical addresses have, with and without translation.
void above_address_size(std::uint32_t step) {
  const unsigned bit = 32 + (step % 32);
  const std::uint64_t address = (std::uint64_t{1} << bit) - (step < 32 ? 0 : page);
  read32(address);
  write32(address);
}

void walk_outside(std::uint32_t step) { Translation::walk(foreign(step) & ~(page - 1)); }

void move_outside(std::uint32_t step) { Translation::move_to(foreign(step) & ~(page - 1)); }

void walk_devices(std::uint32_t step) {
  constexpr std::array<std::uint64_t, 6> devices = {
      GuestMachine::distributor, GuestMachine::cpu_interface, GuestMachine::console,
      GuestMachine::information, GuestMachine::loader,        GuestMachine::store};
  Translation::walk(devices[step % devices.size()]);
}

void execute_devices(std::uint32_t step) {
  constexpr std::array<std::uint64_t, 6> devices = {
      GuestMachine::distributor, GuestMachine::cpu_interface, GuestMachine::console,
      GuestMachine::information, GuestMachine::report,        0x0901'0000};
  execute(devices[step % devices.size()]);
}

constexpr auto attacks = std::to_array<Attack>({
    {"memory-read", foreign_addresses, [](std::uint32_t step) { read64(foreign(step)); }},
    {"memory-write", foreign_addresses, [](std::uint32_t step) { write64(foreign(step)); }},
    {"memory-write-byte", foreign_addresses, [](std::uint32_t step) { write8(foreign(step)); }},
    {"memory-write-pair", foreign_addresses, [](std::uint32_t step) { write_pair(foreign(step)); }},
    {"memory-exchange", foreign_addresses, [](std::uint32_t step) { exchange(foreign(step)); }},
    {"memory-execute", foreign_addresses, [](std::uint32_t step) { execute(foreign(step)); }},
    {"memory-mapped", mapped_steps, access_mapped},
    {"memory-across-end", 64 * kinds, across_the_end},
    {"memory-above-address-size", 64, above_address_size},
    {"memory-walk-outside", foreign_addresses, walk_outside},
    {"memory-move-outside", foreign_addresses, move_outside},
    {"memory-walk-devices", 6, walk_devices},
    {"memory-execute-devices", 6, execute_devices},
    {"memory-store-write", 32, [](std::uint32_t step) { write64(stored(step)); }},
    {"memory-store-read", 32, [](std::uint32_t step) { read64(stored(step)); }},
    {"memory-information-write", 64,
     [](std::uint32_t step) { write64(GuestMachine::information + (std::uint64_t{step} * 64)); }},
    {"memory-loader-write", 64,
     [](std::uint32_t step) { write64(GuestMachine::loader + (std::uint64_t{step} * 64)); }},
    {"memory-loader-execute", 32,
     [](std::uint32_t step) { execute(word(GuestMachine::loader, step)); }},
});

}  // namespace

std::span<const Attack> memory_attacks() { return attacks; }

}  // namespace latenz::guests
