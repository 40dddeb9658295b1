// SPDX-License-Identifier: Apache-2.0
// Abuse of calls: PSCI (Arm DEN 0022), the hypervisor's own, and those to the secure monitor.
#include <array>
#include <cstdint>

#include "attack.hpp"
#include "generated.hpp"
#include "guest.hpp"
#include "latenz/split_mix.hpp"
#include "parameters.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint32_t hvc = 0xD400'0002;
constexpr std::uint32_t smc = 0xD400'0003;
constexpr std::uint32_t psci = 0x8400'0000;
constexpr std::uint32_t psci_64 = 0xC400'0000;

void call_by(std::uint32_t instruction, std::uint64_t function, std::uint64_t first,
             std::uint64_t second = 0, std::uint64_t third = 0) {
  Registers values = {function, first, second, third};
  run_instruction(instruction, values);
}

/// Whether a PSCI function ends or restarts the partition: those are attacks of their own.
bool is_final(std::uint64_t number) { return number == 2 || number == 8 || number == 9; }

/// CPU_ON of every CPU with entries in its own memory and in others'.
void switch_cpus_on(std::uint32_t step) {
  constexpr std::array<std::uint64_t, 6> entries = {
      GuestMachine::memory, 0x4040'0000, 0x1, GuestMachine::distributor, 0, ~std::uint64_t{0}};
  const std::uint64_t cpu = (step / entries.size()) % 8;
  const std::uint64_t affinity = step % 2 == 0 ? cpu : cpu << (8 * (step % 5));
  const std::uint64_t entry = entries[step % entries.size()];
  call_by(hvc, psci_64 + 3, affinity, entry, 0x1234);
  call_by(hvc, psci + 3, affinity, entry, 0x1234);
}

void every_psci_function(std::uint32_t step) {
  const std::uint32_t number = step % 64;
  if (is_final(number)) return;
  call_by(hvc, (step < 64 ? psci : psci_64) + number, step, ~std::uint64_t{0}, 0x4040'0000);
}

void end_by(std::uint32_t function) { call_by(hvc, psci + function, 0); }

/// The arguments are random; the functions are those that exist, and those around them.
void random_hypercall(std::uint32_t step) {
  SplitMix64 random(parameters().seed + step);
  Registers values;
  for (auto& value : values) value = random.next() >> (random.next() % 64);
  values[0] = Hypercall::version + (random.next() % 8);
  run_instruction(hvc, values);
}

void random_secure_call(std::uint32_t step) {
  SplitMix64 random(parameters().seed + step);
  Registers values;
  for (auto& value : values) value = random.next();
  if (step % 2 == 0 && !is_final(values[0] % 32)) values[0] = psci + (values[0] % 32);
  run_instruction(smc | ((step % 0x1'0000) << 5U), values);
}

void statistics(std::uint32_t step) {
  call(Hypercall::statistics, step < 4096 ? step : ~std::uint64_t{0} << (step % 64), step, step);
}

void hypercall_with_number(std::uint32_t step) {
  constexpr std::uint32_t stride = 16;
  call_by(hvc | ((step * stride + 1) << 5U), step % 2 == 0 ? Hypercall::ready : psci + 10, step);
}

/// Channels that are not there, or not its own, and the first one between them.
void notify_numbers(std::uint32_t step) {
  call(Hypercall::notify, step < 4096 ? step : std::uint64_t{1} << (step % 64));
  call(Hypercall::notify, ~std::uint64_t{step});
  if (step % 16 == 0) call(Hypercall::notify, 0);
}

void ring_without_end(std::uint32_t /*step*/) {
  while (true) call(Hypercall::notify, 0);
}

constexpr auto attacks = std::to_array<Attack>({
    {"psci-cpu-on", 240, switch_cpus_on},
    {"psci-cpu-off", 1, [](std::uint32_t /*step*/) { end_by(2); }},
    {"psci-system-off", 1, [](std::uint32_t /*step*/) { end_by(8); }},
    {"psci-system-reset", 50, [](std::uint32_t /*step*/) { end_by(9); }},
    {"psci-affinity", 0x400,
     [](std::uint32_t step) { call_by(hvc, psci_64 + 4, 1ULL << (step % 64), step / 64); }},
    {"psci-migrate", 64, [](std::uint32_t step) { call_by(hvc, psci_64 + 5, step, step); }},
    {"psci-suspend", 256,
     [](std::uint32_t step) { call_by(hvc, psci_64 + 1, step << 16U, 0x4040'0000, step); }},
    {"psci-every-function", 128, every_psci_function},
    {"secure-calls", 2000, random_secure_call},
    {"hypercall-numbers", 0x1000, hypercall_with_number},
    {"hypercall-arguments", 20'000, random_hypercall},
    {"hypercall-statistics", 8192, statistics},
    {"notify-storm", 1, ring_without_end},
    {"notify-numbers", 20'000, notify_numbers},
    {"hypercall-ready", 10'000, [](std::uint32_t /*step*/) { call(Hypercall::ready); }},
});

}  // namespace

std::span<const Attack> call_attacks() { return attacks; }

}  // namespace latenz::guests
