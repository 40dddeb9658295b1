// SPDX-License-Identifier: Apache-2.0
// Abuse of the generic timer.
#include <array>
#include <cstdint>

#include "attack.hpp"
#include "cpu.hpp"
#include "interrupts.hpp"
#include "latenz/split_mix.hpp"
#include "parameters.hpp"

namespace latenz::guests {
namespace {

using firmware::Cpu;
using firmware::VirtualTimer;

constexpr std::uint64_t enable = 1;

/// Its interrupt is there again as soon as it was taken: the handler never stops it.
void storm(std::uint32_t /*step*/) {
  Cpu::enable_interrupts();
  VirtualTimer::compare(0);
  VirtualTimer::control(enable);
  while (true) Cpu::wait_for_interrupt();
}

void set_to_past_and_future(std::uint32_t step) {
  behave(Manners::stops_timer);
  Cpu::enable_interrupts();
  constexpr std::array<std::uint64_t, 6> times = {
      0, ~std::uint64_t{0}, 1, std::uint64_t{1} << 63U, (std::uint64_t{1} << 63U) - 1, 1000};
  VirtualTimer::compare(times[step % times.size()]);
  VirtualTimer::control(step % 4);
}

/// Each time just ahead, so that it fires somewhere in the hypervisor.
void set_just_ahead(std::uint32_t step) {
  behave(Manners::stops_timer);
  Cpu::enable_interrupts();
  SplitMix64 random(parameters().seed + step);
  VirtualTimer::compare(VirtualTimer::count() + (random.next() % 4096));
  VirtualTimer::control(enable);
  Cpu::wait_for_interrupt();
}

void use_physical_timer(std::uint32_t step) {
  asm volatile("msr cntp_cval_el0, %0" ::"r"(std::uint64_t{step} * 1000));
  asm volatile("msr cntp_ctl_el0, %0\n isb" ::"r"(std::uint64_t{step % 4}));
  asm volatile("msr cntp_tval_el0, %0\n isb" ::"r"(std::uint64_t{step}));
  std::uint64_t seen = 0;
  asm volatile("mrs %0, cntp_ctl_el0\n mrs %0, cntp_cval_el0" : "=r"(seen));
  asm volatile("mrs %0, cntp_tval_el0\n mrs %0, cntpct_el0" : "=r"(seen));
}

void physical_storm(std::uint32_t /*step*/) {
  Cpu::enable_interrupts();
  asm volatile("msr cntp_cval_el0, xzr");
  asm volatile("msr cntp_ctl_el0, %0\n isb" ::"r"(enable));
  while (true) Cpu::wait_for_interrupt();
}

/// Access from EL0, and an event stream as fast as it gets.
void control_of_kernel(std::uint32_t step) {
  asm volatile("msr cntkctl_el1, %0\n isb\n wfe" ::"r"(std::uint64_t{step}));
}

void registers_of_hypervisor(std::uint32_t step) {
  const std::uint64_t value = step % 2 == 0 ? 0 : ~std::uint64_t{0};
  asm volatile("msr cnthctl_el2, %0" ::"r"(value));
  asm volatile("msr cntvoff_el2, %0" ::"r"(value));
  asm volatile("msr cnthp_ctl_el2, %0" ::"r"(value));
  asm volatile("msr cnthp_cval_el2, %0" ::"r"(value));
  asm volatile("msr cnthp_tval_el2, %0" ::"r"(value));
  asm volatile("msr cntfrq_el0, %0" ::"r"(value));
  asm volatile("msr s3_7_c14_c2_1, %0" ::"r"(value));  // of the secure physical timer
}

constexpr auto attacks = std::to_array<Attack>({
    {"timer-storm", 1, storm},
    {"timer-past-and-future", 20'000, set_to_past_and_future},
    {"timer-just-ahead", 5000, set_just_ahead},
    {"timer-physical", 1000, use_physical_timer},
    {"timer-physical-storm", 1, physical_storm},
    {"timer-kernel-control", 0x400, control_of_kernel},
    {"timer-of-hypervisor", 100, registers_of_hypervisor},
});

}  // namespace

std::span<const Attack> timer_attacks() { return attacks; }

}  // namespace latenz::guests
