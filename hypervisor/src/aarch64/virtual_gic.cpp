// SPDX-License-Identifier: Apache-2.0
#include "aarch64/virtual_gic.hpp"

#include <bit>

namespace latenz::hypervisor {
namespace {

/// Registers of a GICv2 distributor by offset (Arm IHI 0048B, table 4-1).
enum Register : std::uint32_t {
  control_register = 0x000,
  type = 0x004,
  implementer = 0x008,
  set_enable = 0x100,
  clear_enable = 0x180,
  set_pending = 0x200,
  clear_pending = 0x280,
  set_active = 0x300,
  clear_active = 0x380,
  priorities = 0x400,
  targets = 0x800,
  configuration = 0xC00,
  software_generated = 0xF00,
  identification = 0xFD0,
};

constexpr std::uint32_t identification_bytes[] = {0x04, 0x00, 0x00, 0x00, 0x90, 0xB4,
                                                  0x2B, 0x00, 0x0D, 0xF0, 0x05, 0xB1};
constexpr std::uint32_t bank_end = VirtualGic::ids / 8;  // bytes of registers with a bit an ID

constexpr bool within(std::uint32_t offset, std::uint32_t begin, std::uint32_t size) {
  return offset >= begin && offset - begin < size;
}

/// Calls with each ID whose bit is set in a bank.
template <typename Visit>
void each_id(std::uint32_t bank, std::uint32_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) {
    visit((bank * 32) + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
}

}  // namespace

void VirtualGic::reset() {
  for (std::uint32_t bank = 0; bank < ids / 32; ++bank) {
    each_id(bank, routed_[bank], [](std::uint32_t id) {
      board_distributor.disable(id);
      board_distributor.clear_active(id);
    });
    enabled_[bank] = 0;
    waiting_[bank] = 0;
  }
  enabled_[0] = 0xFFFF;  // software-generated ones are always on
  for (std::uint8_t& each : priority_) each = 0;
  forwarding_ = false;
  for (std::uint32_t& each : list_) each = 0;
  machine_state_ = 0;
  active_priorities_ = 0;
  control_ = VirtualControl::enable;
  if (loaded_) {
    load();
  }
}

std::uint32_t VirtualGic::most_urgent() const {
  std::uint32_t found = ids;
  for (std::uint32_t bank = 0; bank < ids / 32; ++bank) {
    each_id(bank, waiting_[bank] & enabled_[bank], [&](std::uint32_t id) {
      if (found == ids || priority_[id] < priority_[found]) found = id;
    });
  }
  return found;
}

bool VirtualGic::pend_again(std::uint32_t id) {
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    const std::uint32_t entry = list_registers.list(i);
    if (!ListEntry::valid(entry) || ListEntry::id(entry) != id) continue;
    list_registers.set_list(i, entry | ListEntry::pending);
    return true;
  }
  return false;
}

void VirtualGic::flush() {
  if (!forwarding_) return;
  std::uint32_t empty = list_registers.empty() & VirtualControl::all;
  std::uint32_t asked = VirtualControl::enable;
  for (std::uint32_t id = most_urgent(); id != ids; id = most_urgent()) {
    if (!pend_again(id)) {
      if (empty == 0) {
        asked |= VirtualControl::interrupt_when_none_pending;
        break;
      }
      list_registers.set_list(static_cast<unsigned>(std::countr_zero(empty)), list_entry(id));
      empty &= empty - 1;
    }
    clear(waiting_, id);
  }
  list_registers.set_control(asked);
}

void VirtualGic::load() {
  for (unsigned i = 0; i < VirtualControl::registers; ++i) list_registers.set_list(i, list_[i]);
  list_registers.set_machine_state(machine_state_);
  list_registers.set_active_priorities(active_priorities_);
  list_registers.set_control(control_);
  loaded_ = true;
  restore_timer();
  flush();
}

void VirtualGic::save() {
  for (unsigned i = 0; i < VirtualControl::registers; ++i) list_[i] = list_registers.list(i);
  machine_state_ = list_registers.machine_state();
  active_priorities_ = list_registers.active_priorities();
  control_ = list_registers.control();
  loaded_ = false;
}

/// The virtual timer's interrupt is one for all guests of a CPU: it is active while this one has
/// it.
void VirtualGic::restore_timer() const {
  constexpr std::uint32_t timer = InterruptId::virtual_timer;
  bool mine = has(waiting_, timer);
  for (const std::uint32_t entry : list_) {
    mine |= ListEntry::valid(entry) && ListEntry::id(entry) == timer;
  }
  if (mine) {
    board_distributor.set_active(timer);
  } else {
    board_distributor.clear_active(timer);
  }
}

std::uint32_t VirtualGic::read(std::uint32_t offset, unsigned bytes) const {
  const std::uint32_t word = read_word(offset & ~3U) >> (8 * (offset % 4));
  return bytes == 4 ? word : word & ((1U << (8 * bytes)) - 1);
}

std::uint32_t VirtualGic::read_state(std::uint32_t offset) const {
  const std::uint32_t bank = (offset % 0x80) / 4;
  if (offset < set_pending) return enabled_[bank];
  std::uint32_t found = offset < set_active ? waiting_[bank] : 0;
  const std::uint32_t wanted = offset < set_active ? ListEntry::pending : ListEntry::active;
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    const std::uint32_t entry = list_registers.list(i);
    const std::uint32_t id = ListEntry::id(entry);
    if ((entry & wanted) != 0 && id / 32 == bank) found |= 1U << (id % 32);
  }
  return found;
}

std::uint32_t VirtualGic::read_word(std::uint32_t offset) const {
  if (offset == control_register) return forwarding_ ? 1 : 0;
  if (offset == type) return (ids / 32) - 1;  // one CPU
  if (offset == implementer) return 0x43B;    // Arm, as a GIC-400
  if (offset >= set_enable && offset < priorities) {
    return offset % 0x80 < bank_end ? read_state(offset) : 0;
  }
  if (within(offset, priorities, ids)) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) {
      word |= static_cast<std::uint32_t>(priority_[offset - priorities + i]) << (8 * i);
    }
    return word;
  }
  if (within(offset, targets, ids)) return 0x0101'0101;
  if (within(offset, configuration, ids / 4)) return 0;
  if (within(offset, identification, sizeof identification_bytes)) {
    return identification_bytes[(offset - identification) / 4];
  }
  return 0;
}

void VirtualGic::write(std::uint32_t offset, unsigned bytes, std::uint32_t value) {
  const unsigned shift = 8 * (offset % 4);
  const std::uint32_t mask = (bytes == 4 ? ~0U : (1U << (8 * bytes)) - 1) << shift;
  write_word(offset & ~3U, (value << shift) & mask, mask);
}

void VirtualGic::write_word(std::uint32_t offset, std::uint32_t value, std::uint32_t mask) {
  const std::uint32_t bank = (offset % 0x80) / 4;
  if (offset == control_register) {
    forwarding_ = (value & 1U) != 0;
    flush();
  } else if (within(offset, set_enable, bank_end)) {
    write_enable(bank, value);
  } else if (within(offset, clear_enable, bank_end)) {
    write_disable(bank, value);
  } else if (within(offset, set_pending, bank_end)) {
    write_pending(bank, value);
  } else if (within(offset, clear_pending, bank_end)) {
    write_clear_pending(bank, value);
  } else if (within(offset, priorities, ids)) {
    for (unsigned i = 0; i < 4; ++i) {
      if (((mask >> (8 * i)) & 1U) != 0) {
        priority_[offset - priorities + i] = static_cast<std::uint8_t>(value >> (8 * i));
      }
    }
  } else if (offset == software_generated) {
    send_to_itself(value);
  }
}

void VirtualGic::write_enable(std::uint32_t bank, std::uint32_t bits) {
  enabled_[bank] |= bits;
  each_id(bank, bits & routed_[bank], [](std::uint32_t id) { board_distributor.enable(id); });
  flush();
}

void VirtualGic::write_disable(std::uint32_t bank, std::uint32_t bits) {
  enabled_[bank] &= ~(bank == 0 ? bits & ~0xFFFFU : bits);
  each_id(bank, bits & routed_[bank], [](std::uint32_t id) { board_distributor.disable(id); });
}

/// Only what is the guest's alone: neither hardware's nor the hypervisor's to signal.
void VirtualGic::write_pending(std::uint32_t bank, std::uint32_t bits) {
  const std::uint32_t own = bank == 0 ? 0xFFFFU : 0;
  waiting_[bank] |= bits & ~own & ~owned_[bank] & ~watched_[bank];
  flush();
}

void VirtualGic::write_clear_pending(std::uint32_t bank, std::uint32_t bits) {
  const std::uint32_t own = bank == 0 ? 0xFFFFU : 0;
  waiting_[bank] &= ~(bits & ~own & ~owned_[bank] & ~watched_[bank]);
}

/// To others there is nobody to send to; the list of targets may name the guest's only CPU.
void VirtualGic::send_to_itself(std::uint32_t value) {
  const std::uint32_t filter = (value >> 24U) & 3U;
  const bool listed_itself = ((value >> 16U) & 1U) != 0;
  if (filter == 2 || (filter == 0 && listed_itself)) signal(value & 0xFU);
}

}  // namespace latenz::hypervisor
