// SPDX-License-Identifier: Apache-2.0
// A CPU that several partitions share by time: carries out what the dispatcher decides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "aarch64/guest_access.hpp"
#include "aarch64/partition.hpp"
#include "aarch64/processor.hpp"
#include "arrival_list.hpp"
#include "clock.hpp"
#include "configuration.hpp"
#include "dispatcher.hpp"
#include "late.hpp"
#include "trace.hpp"

namespace latenz::hypervisor {

class Tdma {
 public:
  /// Makes the plan. Arrivals are converted where they are.
  void prepare(const Configuration& configuration, std::span<Partition> partitions);

  /// Begins with the first slot; returns what is to be executed.
  Vcpu* start(Processor& processor, std::uint64_t trap_ticks);

  /// An interrupt, which has been acknowledged. Those of the hypervisor itself are deactivated
  /// here, when their reason is gone; one that the running guest owns has been signalled to it.
  Vcpu* interrupt(Processor& processor, std::uint64_t entered, std::uint32_t id);

  /// After a trap of the guest that ended or restarted its partition.
  Vcpu* partition_changed(Processor& processor, std::uint64_t entered, Outcome outcome);

  /// A partition begins anew or ended, while another one is about to run.
  void settle(PartitionIndex index, Outcome outcome);

  [[nodiscard]] const Dispatcher& dispatcher() const { return dispatcher_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] Instant epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }
  [[nodiscard]] std::uint64_t trap_ticks() const { return trap_ticks_; }
  [[nodiscard]] Duration latest_slot() const { return latest_slot_; }
  [[nodiscard]] std::uint64_t longest_queue(PartitionIndex index) const {
    return longest_queue_[index];
  }

 private:
  /// What the hypervisor does for a while; becomes a record when it ends.
  struct Section {
    TraceRecord record;
    bool open;
  };

  /// An interrupt that the guest has got but that is not yet noted.
  struct LateNote {
    bool any;
    std::uint16_t source;
    Instant arrival;
    std::uint64_t began;
    std::uint64_t ended;
  };

  void plan_slots(const Clock& clock);
  void plan_sources(const Clock& clock);
  [[nodiscard]] const Limit* planned_limit(const Clock& clock, std::uint32_t source);
  void plan_devices();
  void convert_arrivals(const Clock& clock);

  void measure_from_here();
  void end_if_all_is_done();
  bool is_stuck();

  [[gnu::noinline]] Vcpu* visit(Processor& processor, std::uint64_t entered, std::uint32_t id);
  void begin_visit(std::uint64_t entered);
  void serve(Processor& processor, std::uint64_t entered, std::uint32_t id);
  [[gnu::always_inline]] bool raise_in_own_slot(Processor& processor, std::uint64_t entered);
  void enable_devices() const;
  void disable_devices() const;
  void lose_devices(PartitionIndex partition) const;

  [[nodiscard]] Instant next_event() const;
  void serve_event();
  void serve_due_events();
  void switch_slot();
  void raise_arrival();
  void raise_device(std::uint64_t entered, std::uint16_t source);
  void signal_to_owner(const Processor& processor, std::uint32_t id);
  void raise(std::uint16_t source, Instant arrival, std::uint64_t began);
  void raise_if_permitted(std::uint16_t source, Instant arrival, std::uint64_t began);
  void mask(std::uint16_t source, std::uint64_t began);
  [[gnu::noinline]] void unmask();
  void pass_over_masked();
  [[nodiscard]] bool is_device(std::uint16_t source) const {
    return (configuration_->source[source].flags & SourceEntry::is_device) != 0;
  }
  [[nodiscard]] bool all_raised() const;
  [[nodiscard]] bool short_way_is_open() const;
  void catch_up();
  void charge(std::uint64_t entered);
  [[nodiscard]] bool is_presented(const Vcpu& vcpu) const {
    return vcpu.partition != idle_partition && presented_[vcpu.partition];
  }
  void end_bottom_handlers(Processor& processor, std::uint64_t entered);
  Next decide();
  Vcpu* resume(Processor& processor, std::uint64_t entered, std::uint32_t id);
  [[nodiscard]] std::uint64_t provoked_ticks(std::uint64_t entered, std::uint64_t left) const;
  void leave(const Processor& processor, const Next& next, std::uint64_t at,
             std::uint32_t id) const;
  void present(Vcpu& vcpu);
  void arm_arrival_timer() const;
  void arm_slot_timer(const Next& next, std::uint64_t at) const;

  void open(TraceKind kind, std::uint64_t at, PartitionIndex partition, std::uint16_t source,
            std::uint32_t value, std::uint32_t detail);
  void close(std::uint64_t at);

  const Configuration* configuration_ = nullptr;
  std::span<Partition> partitions_;
  Dispatcher dispatcher_;
  DispatcherPlan plan_{};
  ArrivalList arrivals_;
  Trace trace_;
  Section section_{};
  LateNote late_{};
  std::array<PlannedSlot, Configuration::most_slots> slots_{};
  std::array<PlannedSource, Configuration::most_sources> sources_{};
  std::array<Late<Limit>, Configuration::most_sources> limits_{};
  std::array<std::uint32_t, Configuration::most_sources> interrupts_{};
  std::array<std::uint16_t, Configuration::most_sources> device_list_{};
  std::span<const std::uint16_t> devices_;  ///< sources that devices raise
  std::uint32_t device_bits_ = 0;           ///< the same, a bit for each
  std::array<Duration, Configuration::most_distances> distances_{};
  std::array<std::uint64_t, Configuration::most_partitions> longest_queue_{};
  std::array<bool, Configuration::most_partitions> presented_{};
  Duration arrival_period_;
  Instant epoch_;
  std::uint64_t entered_ = 0;      ///< tick at which the hypervisor was entered
  std::uint64_t resumed_ = 0;      ///< tick at which the guest went on
  std::uint64_t trap_ticks_ = 0;   ///< entering and leaving
  std::uint64_t others_from_ = 0;  ///< tick at which work for others began in this visit; 0: none
  bool provoked_ = false;          ///< the guest that ran caused this visit
  std::uint64_t job_executed_ = 0;
  std::uint64_t cycles_ = 0;
  std::uint64_t completed_ = 0;  ///< bottom handlers, when the cycle before ended
  std::uint64_t stuck_cycles_ = 0;
  Duration latest_slot_;
  bool measuring_ = false;
  bool job_runs_ = false;
  bool short_way_ = false;  ///< the next arrival may go it, by what was when the guest went on
};

}  // namespace latenz::hypervisor
