// SPDX-License-Identifier: Apache-2.0
// The board's interrupt controller, GICv2 with virtualization (Arm IHI 0048B).
#pragma once

#include <cstdint>

#include "aarch64/mmio.hpp"
#include "boards/board.hpp"

namespace latenz::hypervisor {

/// Private interrupts that the hypervisor uses.
struct InterruptId {
  static constexpr std::uint32_t maintenance = 25;
  static constexpr std::uint32_t slot_timer = 26;     ///< CNTHP: slots and budgets
  static constexpr std::uint32_t virtual_timer = 27;  ///< CNTV, of the guest that runs
  static constexpr std::uint32_t arrival_timer = 30;  ///< CNTP: raises arrivals
  static constexpr std::uint32_t first_shared = 32;
  static constexpr std::uint32_t spurious = 1020;
  static constexpr std::uint32_t end = 1024;  ///< of all that a controller may have
};

/// The distributor; `start` once, the rest by any CPU for what is its own.
class Distributor {
 public:
  void start(const Board& board);
  /// Private interrupts of the CPU this runs on: all off, slot timer before arrivals before others.
  void start_private() const;
  void enable(std::uint32_t id) const { write_bit(0x100, id); }
  void disable(std::uint32_t id) const { write_bit(0x180, id); }
  /// The same for each ID whose bit is set in a bank of 32.
  void enable_all(std::uint32_t bank, std::uint32_t bits) const { write_bank(0x100, bank, bits); }
  void disable_all(std::uint32_t bank, std::uint32_t bits) const { write_bank(0x180, bank, bits); }
  void clear_all_active(std::uint32_t bank, std::uint32_t bits) const {
    write_bank(0x380, bank, bits);
  }
  void set_active(std::uint32_t id) const { write_bit(0x300, id); }
  void clear_active(std::uint32_t id) const { write_bit(0x380, id); }
  void clear_pending(std::uint32_t id) const { write_bit(0x280, id); }
  void route(std::uint32_t id, std::uint32_t cpu) const;

 private:
  void write_bit(std::uint32_t registers, std::uint32_t id) const {
    write_bank(registers, id / 32, 1U << (id % 32));
  }
  void write_bank(std::uint32_t registers, std::uint32_t bank, std::uint32_t bits) const {
    Mmio::write32(base_ + registers + (std::uint64_t{bank} * 4), bits);
  }
  std::uint64_t base_ = 0;
};

/// The interface of the CPU this runs on.
class CpuInterface {
 public:
  explicit constexpr CpuInterface(std::uint64_t base) : base_(base) {}
  CpuInterface() = default;

  void start() const {
    Mmio::write32(base_ + 0x004, 0xFF);             // lets all priorities through
    Mmio::write32(base_ + 0x000, 1U | (1U << 9U));  // EOImode: ending is not deactivating
  }
  [[nodiscard]] std::uint32_t acknowledge() const { return Mmio::read32(base_ + 0x00C); }
  void drop_priority(std::uint32_t acknowledged) const {
    Mmio::write32(base_ + 0x010, acknowledged);
  }
  void deactivate(std::uint32_t acknowledged) const { Mmio::write32(base_ + 0x1000, acknowledged); }

 private:
  std::uint64_t base_ = 0;
};

/// The list registers (GICH) of the CPU this runs on.
class VirtualControl {
 public:
  static constexpr unsigned registers = 4;
  static constexpr std::uint32_t all = (1U << registers) - 1;
  static constexpr std::uint32_t enable = 1U << 0U;
  static constexpr std::uint32_t interrupt_when_almost_empty = 1U << 1U;
  static constexpr std::uint32_t interrupt_when_none_pending = 1U << 3U;

  explicit constexpr VirtualControl(std::uint64_t base) : base_(base) {}
  VirtualControl() = default;

  [[nodiscard]] std::uint32_t control() const { return Mmio::read32(base_ + 0x000); }
  void set_control(std::uint32_t value) const { Mmio::write32(base_ + 0x000, value); }
  [[nodiscard]] std::uint32_t machine_state() const { return Mmio::read32(base_ + 0x008); }
  void set_machine_state(std::uint32_t value) const { Mmio::write32(base_ + 0x008, value); }
  /// Bit for each list register whose interrupt has ended and asked for maintenance.
  [[nodiscard]] std::uint32_t ended() const { return Mmio::read32(base_ + 0x020); }
  /// Bit for each empty list register.
  [[nodiscard]] std::uint32_t empty() const { return Mmio::read32(base_ + 0x030); }
  [[nodiscard]] std::uint32_t active_priorities() const { return Mmio::read32(base_ + 0x0F0); }
  void set_active_priorities(std::uint32_t value) const { Mmio::write32(base_ + 0x0F0, value); }
  [[nodiscard]] std::uint32_t list(unsigned i) const {
    return Mmio::read32(base_ + 0x100 + (std::uint64_t{4} * i));
  }
  void set_list(unsigned i, std::uint32_t value) const {
    Mmio::write32(base_ + 0x100 + (std::uint64_t{4} * i), value);
  }

 private:
  std::uint64_t base_ = 0;
};

/// Bits of a list register.
struct ListEntry {
  static constexpr std::uint32_t hardware = 1U << 31U;
  static constexpr std::uint32_t group1 = 1U << 30U;
  static constexpr std::uint32_t active = 1U << 29U;
  static constexpr std::uint32_t pending = 1U << 28U;
  static constexpr std::uint32_t maintenance = 1U << 19U;  ///< asked for at its end, if no hardware
  static constexpr unsigned priority_shift = 23;           ///< five bits
  static constexpr unsigned physical_shift = 10;

  static constexpr std::uint32_t id(std::uint32_t entry) { return entry & 0x3FFU; }
  static constexpr bool only_pends(std::uint32_t entry) {
    return (entry & (active | pending)) == pending;
  }
  static constexpr bool valid(std::uint32_t entry) { return (entry & (active | pending)) != 0; }
};

extern Distributor board_distributor;
extern VirtualControl list_registers;  ///< of the CPU this runs on

}  // namespace latenz::hypervisor
