// SPDX-License-Identifier: Apache-2.0
// The board's interrupt controller, GICv2 with virtualization (Arm IHI 0048B).
#pragma once

#include <cstdint>

#include "aarch64/distributor_banks.hpp"
#include "aarch64/mmio.hpp"
#include "gic_places.hpp"
#include "gic_registers.hpp"
#include "list_entry.hpp"

namespace latenz::hypervisor {

/// The distributor; `start` once, the rest by any CPU for what is its own.
class Distributor : public DistributorBanks<Distributor> {
 public:
  void start(const GicPlaces& places);
  /// Private interrupts of the CPU this runs on: all off, slot timer before arrivals before others.
  void start_private() const;
  void route(std::uint32_t id, std::uint32_t cpu) const;

 private:
  friend DistributorBanks<Distributor>;

  [[nodiscard]] std::uint64_t frame_of(std::uint32_t /*bank*/) const { return base_; }
  std::uint64_t base_ = 0;
};

/// The interface of the CPU this runs on.
class CpuInterface {
 public:
  explicit constexpr CpuInterface(const GicPlaces& places) : base_(places.cpu_interface) {}
  CpuInterface() = default;

  void start() const {
    Mmio::write32(base_ + Gicc::priority_mask, 0xFF);  // lets all priorities through
    Mmio::write32(base_ + Gicc::control, Gicc::enable | Gicc::end_only_drops_priority);
  }
  [[nodiscard]] std::uint32_t acknowledge() const {
    return Mmio::read32(base_ + Gicc::acknowledge);
  }
  void drop_priority(std::uint32_t acknowledged) const {
    Mmio::write32(base_ + Gicc::end, acknowledged);
  }
  void deactivate(std::uint32_t acknowledged) const {
    Mmio::write32(base_ + Gicc::deactivate, acknowledged);
  }

 private:
  std::uint64_t base_ = 0;
};

/// The list registers (GICH) of the CPU this runs on.
class VirtualControl {
 public:
  using Entry = Gicv2ListEntry;
  using ActivePriorities = std::uint32_t;

  explicit constexpr VirtualControl(const GicPlaces& places) : base_(places.virtual_control) {}
  VirtualControl() = default;

  [[nodiscard]] std::uint32_t control() const { return Mmio::read32(base_ + Gich::control); }
  void set_control(std::uint32_t value) const { Mmio::write32(base_ + Gich::control, value); }
  [[nodiscard]] std::uint32_t machine_state() const {
    return Mmio::read32(base_ + Gich::machine_state);
  }
  void set_machine_state(std::uint32_t value) const {
    Mmio::write32(base_ + Gich::machine_state, value);
  }
  /// Bit for each list register whose interrupt has ended and asked for maintenance.
  [[nodiscard]] std::uint32_t ended() const { return Mmio::read32(base_ + Gich::ended); }
  /// Bit for each empty list register.
  [[nodiscard]] std::uint32_t empty() const { return Mmio::read32(base_ + Gich::empty); }
  [[nodiscard]] std::uint32_t active_priorities() const {
    return Mmio::read32(base_ + Gich::active_priorities);
  }
  void set_active_priorities(std::uint32_t value) const {
    Mmio::write32(base_ + Gich::active_priorities, value);
  }
  [[nodiscard]] std::uint32_t list(unsigned i) const {
    return Mmio::read32(base_ + Gich::list + (std::uint64_t{4} * i));
  }
  void set_list(unsigned i, std::uint32_t value) const {
    Mmio::write32(base_ + Gich::list + (std::uint64_t{4} * i), value);
  }

 private:
  std::uint64_t base_ = 0;
};

}  // namespace latenz::hypervisor
