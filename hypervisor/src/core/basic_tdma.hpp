// SPDX-License-Identifier: Apache-2.0
// A CPU that several partitions share by time: carries out what the dispatcher decides.
// Freestanding.
//
// Members that are not in the class: basic_tdma_events.hpp and basic_tdma_visits.hpp, for whoever
// makes one of a machine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arrival_list.hpp"
#include "decisions.hpp"
#include "gic_registers.hpp"
#include "latenz/time.hpp"
#include "machine.hpp"
#include "measuring_run.hpp"
#include "source_devices.hpp"
#include "tdma_plan.hpp"
#include "trace_sections.hpp"

namespace latenz::hypervisor {

template <SharedMachine Machine>
class BasicTdma {
 public:
  using Dispatcher = Machine::Dispatcher;
  using Partition = Machine::Partition;
  using Processor = Machine::Processor;
  using Vcpu = Machine::Vcpu;

  constexpr BasicTdma() = default;
  explicit constexpr BasicTdma(Machine machine) : machine_(machine) {}

  /// Once, before it starts.
  /// @param plan       of all CPUs; lives on
  /// @param partitions those of all CPUs
  /// @param room       of all CPUs' dispatchers
  [[gnu::cold]] void prepare(const TdmaPlan& plan, std::uint32_t cpu,
                             std::span<Partition> partitions, Dispatcher::Room& room);

  /// Begins with the first slot; returns what is to be executed.
  Vcpu* start(Processor& processor, std::uint64_t trap_ticks);

  /// An interrupt, which has been acknowledged. Those of the hypervisor itself are deactivated
  /// here, when their reason is gone; one that the running guest owns has been signalled to it.
  Vcpu* interrupt(Processor& processor, std::uint64_t entered, std::uint32_t id);

  /// After a trap of the guest that ended or restarted its partition.
  Vcpu* partition_changed(Processor& processor, std::uint64_t entered, Outcome outcome);

  /// Whether doorbells can be rung: from the first cycle that counts to the end of the CPU's run.
  [[nodiscard]] bool rings() const { return run_.measuring() && !all_raised(); }

  /// The running guest rings a doorbell: its source interrupts at the time of the call. What that
  /// takes is the guest's own time, in its slot or its job.
  Vcpu* ring(Processor& processor, std::uint64_t entered, std::uint16_t source);

  /// A partition begins anew or ended, while another one is about to run.
  void settle(PartitionIndex index, Outcome outcome);

  [[nodiscard]] const Dispatcher& dispatcher() const { return dispatcher_; }
  [[nodiscard]] const Trace& trace() const { return sections_.trace(); }
  [[nodiscard]] const MeasuringRun& run() const { return run_; }
  [[nodiscard]] std::uint64_t trap_ticks() const { return trap_ticks_; }

 private:
  /// An interrupt that the guest has got but that is not yet noted.
  struct Unnoted {
    bool any;
    std::uint16_t source;
    Instant arrival;
    std::uint64_t began;
    std::uint64_t ended;
  };

  // From the first slot to the last; what happens once is small, not quick:
  [[gnu::cold]] void begin_dispatcher(Instant epoch);
  [[gnu::cold]] bool measure_from_here();
  void end_if_all_is_done();
  [[gnu::cold]] void end_run();
  [[nodiscard]] std::uint64_t least_cycles() const {
    return plan_->configuration().cpu[cpu_].least_cycles;
  }
  [[nodiscard]] bool all_raised() const;
  void each_own_partition(auto visit) const {
    for (BitSet rest = plan_->partitions_of(cpu_); rest != 0; rest &= rest - 1) {
      visit(partitions_[static_cast<std::size_t>(std::countr_zero(rest))]);
    }
  }

  // Events:
  [[nodiscard]] Instant next_event() const;
  void serve_event();
  void serve_due_events();
  void switch_slot();
  void raise_arrival();
  void raise_now(std::uint64_t entered, std::uint16_t source);
  void signal_to_owner(const Processor& processor, std::uint32_t id);
  void raise(std::uint16_t source, Instant arrival, std::uint64_t began);
  void raise_if_permitted(std::uint16_t source, Instant arrival, std::uint64_t began);
  void mask(std::uint16_t source, std::uint64_t began);
  [[gnu::noinline]] void unmask();
  [[gnu::noinline]] void watch();
  void arm_arrival_timer() const;

  // Visits:
  [[gnu::noinline]] Vcpu* visit(Processor& processor, std::uint64_t entered, std::uint32_t id);
  void begin_visit(std::uint64_t entered);
  void serve(Processor& processor, std::uint64_t entered, std::uint32_t id);
  [[gnu::always_inline]] inline bool raise_in_own_slot(Processor& processor, std::uint64_t entered);
  [[nodiscard]] bool short_way_is_open() const;
  void catch_up();
  void charge(std::uint64_t entered);
  [[nodiscard]] bool is_presented(const Vcpu& vcpu) const {
    return vcpu.partition != nobody && presented_[vcpu.partition];
  }
  void end_bottom_handlers(Processor& processor, std::uint64_t entered);
  Next decide();
  Vcpu* resume(Processor& processor, std::uint64_t entered, std::uint32_t id);
  [[nodiscard]] std::uint64_t provoked_ticks(std::uint64_t entered, std::uint64_t left) const;
  void leave(const Processor& processor, const Next& next, std::uint64_t at,
             std::uint32_t id) const;
  void present(Vcpu& vcpu);
  void arm_slot_timer(const Next& next, std::uint64_t at) const;

  void open(TraceKind kind, std::uint64_t at, PartitionIndex partition, std::uint16_t source,
            std::uint32_t value, std::uint32_t detail);
  void close(std::uint64_t at);

  // In this order: what is far from the object's start takes more instructions to get at.
  [[no_unique_address]] Machine machine_;
  std::uint64_t entered_ = 0;      ///< tick at which the hypervisor was entered
  std::uint64_t resumed_ = 0;      ///< tick at which the guest went on
  std::uint64_t trap_ticks_ = 0;   ///< entering and leaving
  std::uint64_t others_from_ = 0;  ///< tick at which work for others began in this visit; 0: none
  std::uint64_t job_executed_ = 0;
  bool provoked_ = false;  ///< the guest that ran caused this visit
  bool job_runs_ = false;
  bool any_watched_ = false;  ///< the cycles count, and a partition has a watchdog
  bool short_way_ = false;    ///< the next arrival may go it, by what was when the guest went on
  Unnoted unnoted_{};
  std::array<bool, Configuration::most_partitions> presented_{};
  std::span<Partition> partitions_;
  const TdmaPlan* plan_ = nullptr;
  std::uint32_t cpu_ = 0;
  Processor* processor_ = nullptr;
  ArrivalList arrivals_;
  TraceSections sections_;
  MeasuringRun run_;
  SourceDevices devices_;
  Dispatcher dispatcher_;
};

/// Time as a tick of the counter.
constexpr Instant instant_of(std::uint64_t tick) {
  return Instant(static_cast<std::int64_t>(tick));
}
constexpr std::uint64_t tick_of(Instant at) { return static_cast<std::uint64_t>(at.ns()); }

/// As a field of a record.
constexpr std::uint32_t cut(std::int64_t ticks) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ticks, 0, UINT32_MAX));
}

}  // namespace latenz::hypervisor
