// SPDX-License-Identifier: Apache-2.0
#include "aarch64/power.hpp"

#include <atomic>

#include "aarch64/processor.hpp"
#include "aarch64/secure_monitor.hpp"
#include "aarch64/system_registers.hpp"
#include "boards/board.hpp"

extern "C" {
void start_secondary();                                          // start.S
void write_physical(std::uint64_t address, std::uint32_t word);  // start.S
}

namespace latenz::hypervisor {
namespace {

/// BCM2711's power manager: registers, and what each has to be written with (Linux has the same in
/// drivers/watchdog/bcm2835_wdt.c). Booting from partition 63 is staying off.
constexpr std::uint32_t reset_control = 0x1C, reset_status = 0x20, watchdog = 0x24;
constexpr std::uint32_t password = 0x5A00'0000, full_reset = 0x20, partition_63 = 0x555;
constexpr std::uint32_t soon = 10;  // in 16 us

/// Cores wait for the address of their first instruction; of its 64 bits the upper ones are 0.
/// False if none answers: TF-A in the place of that firmware has its cores wait elsewhere.
bool release(std::uint32_t cpu, std::uint64_t entry) {
  write_physical(board().spin_table + (std::uint64_t{8} * cpu), static_cast<std::uint32_t>(entry));
  asm volatile("sev");
  const std::atomic_ref<std::uint64_t> started(processors[cpu].stack_end);
  const std::uint64_t begun = now();
  const std::uint64_t patience = CntFrequency::read() / 100;
  while (started.load(std::memory_order_acquire) == 0 && now() - begun < patience) {
  }
  return started.load(std::memory_order_acquire) != 0;
}

}  // namespace

bool Power::start_cpu(std::uint32_t cpu) {
  const auto entry = reinterpret_cast<std::uint64_t>(&start_secondary);
  if (board().spin_table != 0 && release(cpu, entry)) return true;
  return SecureMonitor::cpu_on(cpu, entry, cpu) == 0;
}

void Power::off() {
  const std::uint64_t manager = board().power_manager;
  if (manager == 0) SecureMonitor::power_off();
  write_physical(manager + reset_status, password | partition_63);
  write_physical(manager + watchdog, password | soon);
  write_physical(manager + reset_control, password | full_reset);
  while (true) asm volatile("wfi");
}

}  // namespace latenz::hypervisor
