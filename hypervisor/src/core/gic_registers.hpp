// SPDX-License-Identifier: Apache-2.0
// The registers of a GICv2 with virtualization, as the board has it and as a guest sees it
// (Arm IHI 0048B: tables 4-1, 4-2 and 5-1), and the interrupts that are the hypervisor's own.
// Freestanding.
#pragma once

#include <cstdint>

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

/// At equal times the slot switch comes first. Lower is more urgent.
struct Priority {
  static constexpr std::uint8_t slot_timer = 0x00;
  static constexpr std::uint8_t arrival_timer = 0x40;
  static constexpr std::uint8_t others = 0x80;
};

/// The distributor, by offset. Those from `groups` to `clear_active` have a bit for each
/// interrupt, `priorities` and `targets` a byte, `configuration` two bits.
struct Gicd {
  static constexpr std::uint32_t control = 0x000;
  static constexpr std::uint32_t type = 0x004;
  static constexpr std::uint32_t implementer = 0x008;
  static constexpr std::uint32_t groups = 0x080;
  static constexpr std::uint32_t set_enable = 0x100;
  static constexpr std::uint32_t clear_enable = 0x180;
  static constexpr std::uint32_t set_pending = 0x200;
  static constexpr std::uint32_t clear_pending = 0x280;
  static constexpr std::uint32_t set_active = 0x300;
  static constexpr std::uint32_t clear_active = 0x380;
  static constexpr std::uint32_t priorities = 0x400;
  static constexpr std::uint32_t targets = 0x800;
  static constexpr std::uint32_t configuration = 0xC00;
  static constexpr std::uint32_t software_generated = 0xF00;
  static constexpr std::uint32_t identification = 0xFD0;

  static constexpr std::uint32_t edge = 2;  ///< of the two bits in `configuration`
};

/// The interface of a CPU, by offset.
struct Gicc {
  static constexpr std::uint32_t control = 0x000;
  static constexpr std::uint32_t priority_mask = 0x004;
  static constexpr std::uint32_t acknowledge = 0x00C;
  static constexpr std::uint32_t end = 0x010;
  static constexpr std::uint32_t deactivate = 0x1000;

  // Bits of `control`:
  static constexpr std::uint32_t enable = 1U << 0U;
  static constexpr std::uint32_t end_only_drops_priority = 1U << 9U;  ///< EOImode
};

/// The control of a CPU's virtual interface, by offset.
struct Gich {
  static constexpr std::uint32_t control = 0x000;
  static constexpr std::uint32_t machine_state = 0x008;
  static constexpr std::uint32_t ended = 0x020;
  static constexpr std::uint32_t empty = 0x030;
  static constexpr std::uint32_t active_priorities = 0x0F0;
  static constexpr std::uint32_t list = 0x100;

  static constexpr unsigned registers = 4;  ///< list registers, of a GIC-400
  static constexpr std::uint32_t all = (1U << registers) - 1;

  // Bits of `control`:
  static constexpr std::uint32_t enable = 1U << 0U;
  static constexpr std::uint32_t interrupt_when_almost_empty = 1U << 1U;
  static constexpr std::uint32_t interrupt_when_none_pending = 1U << 3U;
};

}  // namespace latenz::hypervisor
