// SPDX-License-Identifier: Apache-2.0
// A CPU of the board that several partitions share by time.
#pragma once

#include <cstdint>

#include "aarch64/board_gic.hpp"
#include "aarch64/partition.hpp"
#include "aarch64/processor.hpp"
#include "aarch64/system_registers.hpp"
#include "basic_tdma.hpp"
#include "dispatcher.hpp"

namespace latenz::hypervisor {

/// The physical counter, EL2's timer for slots and budgets, EL1's for arrivals.
struct SharedCpu {
  using Dispatcher = hypervisor::Dispatcher;
  using Partition = hypervisor::Partition;
  using Processor = hypervisor::Processor;
  using Vcpu = hypervisor::Vcpu;

  static constexpr std::uint64_t timer_enable = 1;

  [[gnu::always_inline]] static std::uint64_t now() { return hypervisor::now(); }
  static std::uint64_t counter_hz() { return CntFrequency::read(); }
  static void arm_slot_timer(std::uint64_t tick) {
    CnthpCompare::write(tick);
    CnthpControl::write(timer_enable);
  }
  static void arm_arrival_timer(std::uint64_t tick) {
    CntpCompare::write(tick);
    CntpControl::write(timer_enable);
  }
  static void stop_arrival_timer() { CntpControl::write(0); }
  static void finish_writes() { data_barrier(); }
  static const Distributor& distributor() { return board_distributor; }

  static bool any_running();
  static std::uint64_t first_slot(std::uint64_t earliest);
  static std::uint64_t first_cycle(std::uint64_t earliest);
  static void settle_errors(Processor& processor);
  static void end_run(std::uint32_t cpu);
};

/// One for each CPU with slots.
class Tdma : public BasicTdma<SharedCpu> {};

}  // namespace latenz::hypervisor
