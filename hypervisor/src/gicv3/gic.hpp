// SPDX-License-Identifier: Apache-2.0
// The board's interrupt controller, GICv3 with system registers (Arm IHI 0069H).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "aarch64/distributor_banks.hpp"
#include "aarch64/system_registers.hpp"
#include "gic_places.hpp"
#include "gic_registers.hpp"
#include "list_entry.hpp"

namespace latenz::hypervisor {

/// The distributor and all redistributors; `start` once, the rest by any CPU for what is its own.
class Distributor : public DistributorBanks<Distributor> {
 public:
  void start(const GicPlaces& places);
  /// Private interrupts of the CPU this runs on: all off, slot timer before arrivals before others.
  void start_private() const;
  /// @param cpu whose number is its affinity, as for PSCI's CPU_ON
  void route(std::uint32_t id, std::uint32_t cpu) const;

 private:
  friend DistributorBanks<Distributor>;

  [[nodiscard]] std::uint64_t frame_of(std::uint32_t bank) const {
    return bank == 0 ? private_[this_cpu()] : base_;
  }
  static constexpr std::size_t most_cpus = 8;

  static std::size_t this_cpu() { return MpidrEl1::read() % most_cpus; }
  [[nodiscard]] bool find_redistributors(std::uint64_t first);
  std::uint64_t base_ = 0;
  std::array<std::uint64_t, most_cpus> private_{};  ///< frame of private interrupts of each CPU
};

/// The interface of the CPU this runs on.
class CpuInterface {
 public:
  explicit constexpr CpuInterface(const GicPlaces& /*places*/) {}
  CpuInterface() = default;

  /// Switches on system registers, and empties the list registers.
  static void start();
  /// What is written to the distributor from here on knows of it.
  static std::uint32_t acknowledge() {
    const auto id = static_cast<std::uint32_t>(IccAcknowledge::read());
    data_barrier();
    return id;
  }
  static void drop_priority(std::uint32_t acknowledged) { IccEnd::write(acknowledged); }
  static void deactivate(std::uint32_t acknowledged) { IccDeactivate::write(acknowledged); }
};

/// The list registers (ICH) of the CPU this runs on: the first four, as many as all have.
class VirtualControl {
 public:
  using Entry = Gicv3ListEntry;
  /// Of group 1, and above them those of group 0, which no entry uses but a guest may write.
  using ActivePriorities = std::uint64_t;

  explicit constexpr VirtualControl(const GicPlaces& /*places*/) {}
  VirtualControl() = default;

  static void set_control(std::uint32_t value) { IchControl::write(value); }
  static std::uint32_t machine_state() {
    return static_cast<std::uint32_t>(IchMachineState::read());
  }
  static void set_machine_state(std::uint32_t value) { IchMachineState::write(value); }
  /// Bit for each list register whose interrupt has ended and asked for maintenance.
  static std::uint32_t ended() {
    instruction_barrier();
    return static_cast<std::uint32_t>(IchEnded::read());
  }
  /// Bit for each empty list register, by what was written to them before.
  static std::uint32_t empty() {
    instruction_barrier();
    return static_cast<std::uint32_t>(IchEmpty::read());
  }
  static std::uint64_t active_priorities() {
    return (IchActiveGroup0::read() << 32U) | (IchActiveGroup1::read() & 0xFFFF'FFFFU);
  }
  static void set_active_priorities(std::uint64_t value) {
    IchActiveGroup0::write(value >> 32U);
    IchActiveGroup1::write(value & 0xFFFF'FFFFU);
  }
  static std::uint64_t list(unsigned i) {
    if (i < 2) return i == 0 ? IchList0::read() : IchList1::read();
    return i == 2 ? IchList2::read() : IchList3::read();
  }
  static void set_list(unsigned i, std::uint64_t value) {
    if (i == 0) IchList0::write(value);
    if (i == 1) IchList1::write(value);
    if (i == 2) IchList2::write(value);
    if (i == 3) IchList3::write(value);
  }
};

}  // namespace latenz::hypervisor
