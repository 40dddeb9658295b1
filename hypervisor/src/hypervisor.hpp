// SPDX-License-Identifier: Apache-2.0
// Everything there is: the configuration, its partitions, the CPUs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "aarch64/guest_access.hpp"
#include "aarch64/partition.hpp"
#include "aarch64/processor.hpp"
#include "aarch64/tdma.hpp"
#include "configuration.hpp"
#include "latenz/text.hpp"

namespace latenz::hypervisor {

class Hypervisor {
 public:
  /// On the first CPU: everything, or a message and the end if the configuration is wrong.
  [[noreturn]] void begin();

  /// On any other CPU.
  [[noreturn]] static void begin_secondary(std::uint32_t cpu);

  /// On a CPU that has found out how long a trap takes: what it executes from now on.
  Vcpu* run(Processor& processor, std::uint64_t trap_ticks);

  /// An interrupt of this CPU.
  static Vcpu* interrupt(Processor& processor, std::uint64_t entered);

  /// A trap of the guest that this CPU executes.
  Vcpu* trap(Processor& processor, std::uint64_t entered);

  /// An asynchronous error while a guest ran.
  Vcpu* error(Processor& processor, std::uint64_t entered);

  /// The one that this CPU executed has been saved; errors that it caused are its own.
  void settle_errors(Processor& processor);

  [[nodiscard]] bool any_running() const;
  /// All CPUs with slots begin at the same ticks, with the first slots and with the first cycles
  /// that count: who asks first decides. 0: guests are awaited before those cycles.
  /// @param earliest what the one that asks can keep
  [[nodiscard]] std::uint64_t first_slot(std::uint64_t earliest);
  [[nodiscard]] std::uint64_t first_cycle(std::uint64_t earliest);

  /// A CPU with slots has done all that there was to do. After the last one of them, it finishes.
  void end_run(std::uint32_t cpu);

  /// What a guest may know of its own partition; negative: Hypercall's errors.
  [[nodiscard]] std::int64_t statistic(const Partition& partition, std::uint64_t which) const;

  /// What a guest is told that rings the doorbell of a channel. If it is `rung`, the source is to
  /// be raised.
  [[nodiscard]] std::int64_t ring(const Partition& partition, std::uint64_t channel) const;

 private:
  /// Tells all that was measured, and switches the board off.
  [[noreturn]] void finish();
  [[nodiscard]] std::span<Partition> all() {
    return std::span(partitions_).first(configuration_->partitions);
  }
  [[nodiscard]] std::span<const Partition> all() const {
    return std::span(partitions_).first(configuration_->partitions);
  }
  void build();
  void prepare_slots();
  void start_others() const;
  void tell_sources() const;
  void tell_partitions() const;
  void add_cpu(Text<600>& line, std::uint32_t cpu) const;
  void tell_traces() const;
  void tell_statistics() const;
  static Vcpu* idle_error(Processor& processor);
  Vcpu* idle_trap(Processor& processor, std::uint64_t entered);
  Vcpu* partition_changed(Processor& processor, std::uint64_t entered, Outcome outcome);

  const Configuration* configuration_ = nullptr;
  std::array<Partition, Configuration::most_partitions> partitions_;
  TdmaPlan plan_;
  Dispatcher::Room room_;
  std::array<Tdma, Configuration::most_cpus> tdmas_;
  std::atomic<BitSet> unfinished_;  ///< CPUs with slots
  std::atomic<std::uint64_t> first_slot_;
  std::atomic<std::uint64_t> first_cycle_;
};

extern Hypervisor hypervisor;

/// Says why nothing can go on, and ends everything.
[[noreturn]] void fail(std::string_view reason);

}  // namespace latenz::hypervisor
