// SPDX-License-Identifier: Apache-2.0
// What the hypervisor asks of the machine below it where partitions share a CPU: a board's is in
// src/aarch64, tests have one whose time is a number. A machine is a parameter of templates: what
// it does costs nothing but itself. Freestanding.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "dispatcher_plan.hpp"

namespace latenz::hypervisor {

/// What the rest of the hypervisor has to do for a trap.
enum class Outcome : std::uint8_t {
  served,
  ended,      ///< the partition does not run any more
  restarted,  ///< it begins anew
  rang,       ///< a doorbell, see Hypervisor::ring()
};

/// The list registers of the CPU that this runs on (GICH, or ICH of GICv3): how an entry is encoded
/// (list_entry.hpp), and how wide the registers of active priorities are, is theirs.
template <typename Type, typename Bare = std::remove_cvref_t<Type>>
concept ListRegisters = requires(const Bare& lists, unsigned i, Bare::Entry::Value entry,
                                 Bare::ActivePriorities active, std::uint32_t value) {
  { lists.list(i) } -> std::same_as<typename Bare::Entry::Value>;
  { lists.ended() } -> std::same_as<std::uint32_t>;
  { lists.empty() } -> std::same_as<std::uint32_t>;
  { lists.machine_state() } -> std::same_as<std::uint32_t>;
  { lists.active_priorities() } -> std::same_as<typename Bare::ActivePriorities>;
  lists.set_list(i, entry);
  lists.set_control(value);
  lists.set_machine_state(value);
  lists.set_active_priorities(active);
};

/// The board's distributor (GICD), of which each CPU writes what is its own.
template <typename Type>
concept DistributorRegisters =
    requires(const Type& distributor, std::uint32_t id, std::uint32_t bank, std::uint32_t bits) {
      distributor.route(id, /*cpu=*/bank);
      distributor.enable(id);
      distributor.disable(id);
      distributor.set_active(id);
      distributor.clear_active(id);
      distributor.set_pending(id);
      distributor.trigger_by_edge(id);
      distributor.enable_all(bank, bits);
      distributor.disable_all(bank, bits);
      distributor.clear_all_active(bank, bits);
    };

/// An interrupt controller for guests.
template <typename Type>
concept Gic = requires(const Type& gic) {
  { gic.lists() } -> ListRegisters;
  { gic.distributor() } -> DistributorRegisters;
};

/// A guest, as it is switched to and from.
template <typename Type>
concept GuestCpu = requires(Type& vcpu, std::uint32_t id) {
  { vcpu.partition } -> std::convertible_to<PartitionIndex>;
  { vcpu.gic.owns(id) } -> std::same_as<bool>;
  vcpu.gic.signal_new(id);
  vcpu.gic.signal_later(id);
  vcpu.gic.flush();
  vcpu.load();
  vcpu.load_anew();
  vcpu.save();
};

/// A CPU with the counter and the two timers that it is shared by, and whoever is to be told of
/// what becomes of the run. A test's dispatcher may take the time that decisions cost.
template <typename Type>
concept SharedMachine =
    GuestCpu<typename Type::Vcpu> && requires(const Type& machine, Type::Processor& processor,
                                              Type::Partition& partition, std::uint64_t tick) {
      typename Type::Dispatcher;
      { machine.now() } -> std::same_as<std::uint64_t>;
      { machine.counter_hz() } -> std::same_as<std::uint64_t>;
      machine.arm_slot_timer(tick);
      machine.arm_arrival_timer(tick);
      machine.stop_arrival_timer();
      machine.finish_writes();  // to the interrupt controller
      { machine.distributor() } -> DistributorRegisters;
      { machine.any_running() } -> std::same_as<bool>;
      { machine.first_slot(/*earliest=*/tick) } -> std::same_as<std::uint64_t>;
      { machine.first_cycle(/*earliest=*/tick) } -> std::same_as<std::uint64_t>;
      machine.settle_errors(processor);
      machine.end_run(/*cpu=*/std::uint32_t{});
      { processor.running } -> std::convertible_to<typename Type::Vcpu*>;
      { processor.idle } -> std::convertible_to<typename Type::Vcpu&>;
      processor.interface.deactivate(std::uint32_t{});
      { partition.is_running() } -> std::same_as<bool>;
      { partition.progress() } -> std::same_as<std::uint64_t>;
      { partition.condition() } -> std::same_as<std::uint16_t>;
      { partition.is_watched() } -> std::same_as<bool>;
      { partition.watch(tick, /*runs=*/true) } -> std::same_as<Outcome>;
      partition.tell_first_slot(tick);
      { partition.vcpu } -> std::convertible_to<typename Type::Vcpu&>;
    };

}  // namespace latenz::hypervisor
