// SPDX-License-Identifier: Apache-2.0
// What nobody thought of.
#include <array>
#include <cstdint>

#include "access.hpp"
#include "attack.hpp"
#include "generated.hpp"
#include "guest.hpp"
#include "latenz/split_mix.hpp"
#include "parameters.hpp"

namespace latenz::guests {
namespace {

SplitMix64 numbers(std::uint32_t step) {
  return SplitMix64(parameters().seed ^ (step * 0x9E37ULL));
}

void access(std::uint64_t address, std::uint64_t value) {
  const auto part = static_cast<std::uint32_t>(value >> 3U);
  const std::array<Access, 4> reads = {read8, read16, read32, read64};
  if (value % 8 < reads.size()) {
    reads[value % reads.size()](address);
  } else if (value % 4 == 0) {
    write8(address, part);
  } else if (value % 4 == 1) {
    write16(address, part);
  } else if (value % 4 == 2) {
    write32(address, part);
  } else {
    write64(address, value);
  }
}

std::uint64_t random_device(SplitMix64& random) {
  const std::array<std::uint64_t, 3> devices = {
      GuestMachine::distributor,
      has_gicv3() ? GuestMachine::redistributor + 0x1'0000 : GuestMachine::cpu_interface,
      GuestMachine::console};
  return devices[random.next() % devices.size()];
}

/// Of the devices that the partition has, a word or less: nothing of it is forbidden.
void access_devices(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  const std::uint64_t device = random_device(random);
  const std::uint64_t value = random.next();
  const std::uint64_t size = std::uint64_t{1} << (value % 4);
  if (device == GuestMachine::console && value % 8 >= 4) return;  // a flood of its own
  const std::uint64_t offset = random.next() % 0x1000;
  access(device + (offset / size * size), size == 8 ? value - 1 : value);
}

/// And what no device answers: unaligned, too wide, behind the end.
void access_devices_strangely(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  const std::uint64_t device = random_device(random);
  access(device + (random.next() % 0x1000), random.next());
}

void access_anywhere(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  access(random.next() >> (24 + (random.next() % 32)), random.next());
}

void call_anything(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  Registers values;
  for (auto& value : values) value = random.next();
  values[0] = values[0] & 0xFF00'001FU;                              // all owners, few functions
  if (values[0] == 0x8400'0008 || values[0] == 0x8400'0002) return;  // these are its end
  const std::uint32_t hvc_or_smc = 0xD400'0002 + (step / 0x1'0000 % 2);
  run_instruction(hvc_or_smc, values);
}

void execute_anything(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  Registers values;
  for (auto& value : values) value = random.next() >> (random.next() % 64);
  run_instruction(static_cast<std::uint32_t>(random.next()), values);
}

/// Words of the group that has exceptions, system registers and barriers.
void execute_system_instructions(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  Registers values;
  for (auto& value : values) value = random.next() >> (random.next() % 64);
  constexpr std::uint32_t group = 0xD500'0000;
  run_instruction(group | (static_cast<std::uint32_t>(random.next()) & 0x3F'FFFFU), values);
}

void flood_console(std::uint32_t /*step*/) { write8(GuestMachine::console, 'x'); }

void access_console(std::uint32_t step) {
  SplitMix64 random = numbers(step);
  access(GuestMachine::console + (std::uint64_t{step} * 8), random.next());
}

constexpr auto attacks = std::to_array<Attack>({
    {"random-device-accesses", Attack::as_many_as_wanted, access_devices},
    {"random-strange-accesses", 200, access_devices_strangely},
    {"random-accesses", 100, access_anywhere},
    {"random-calls", Attack::as_many_as_wanted, call_anything},
    {"random-instructions", 200, execute_anything},
    {"random-system-instructions", 2000, execute_system_instructions},
    {"console-flood", 5000, flood_console},
    {"console-registers", 0x200, access_console},
});

}  // namespace

std::span<const Attack> random_attacks() { return attacks; }

}  // namespace latenz::guests
