// SPDX-License-Identifier: Apache-2.0
#include "aarch64/virtual_gic.hpp"

#include <algorithm>
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

/// Calls with the number of each bit that is set.
template <typename Visit>
void each_bit(std::uint32_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<std::uint32_t>(std::countr_zero(bits)));
}

/// Calls with each ID whose bit is set in a bank.
template <typename Visit>
void each_id(std::uint32_t bank, std::uint32_t bits, Visit visit) {
  each_bit(bits, [&](std::uint32_t bit) { visit((bank * 32) + bit); });
}

}  // namespace

void VirtualGic::reset() {
  each_bit(routed_banks_, [this](std::uint32_t bank) {
    board_distributor.disable_all(bank, routed_[bank]);
    board_distributor.clear_all_active(bank, routed_[bank]);
  });
  each_bit(existing_banks_ | 1U, [this](std::uint32_t bank) {
    enabled_[bank] = waiting_[bank] = 0;
    const std::uint32_t own = owned_[bank] | watched_[bank];
    each_id(bank, own, [this](std::uint32_t id) { priority_[id] = 0; });
  });
#pragma GCC unroll 16  // several at a time
  for (std::uint32_t id = 0; id < software_generated_count; ++id) priority_[id] = 0;
  enabled_[0] = software_generated_ids;  // always on
  waiting_banks_ = 0;
  forwarding_ = false;
  clear_list();
  machine_state_ = 0;
  active_priorities_ = 0;
}

void VirtualGic::clear_list() {
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    list_[i] = 0;
    if (loaded_) list_registers.set_list(i, 0);
  }
}

/// One pass, four comparisons for each that waits: at most the software-generated ones, the
/// guest's own timer and devices, and one source.
VirtualGic::MostUrgent VirtualGic::most_urgent() const {
  constexpr std::uint32_t none = MostUrgent::none;
  std::uint32_t first = none;
  std::uint32_t second = none;
  std::uint32_t third = none;
  std::uint32_t fourth = none;
  std::uint32_t fifth = none;
  const auto sift = [](std::uint32_t& kept, std::uint32_t& key) {
    const std::uint32_t before = kept;
    kept = std::min(before, key);
    key = std::max(before, key);
  };
  each_bit(waiting_banks_, [&](std::uint32_t bank) {
    each_id(bank, waiting_[bank] & enabled_[bank], [&](std::uint32_t id) {
      std::uint32_t key = key_of(id);
      sift(first, key);
      sift(second, key);
      sift(third, key);
      sift(fourth, key);
      fifth = std::min(fifth, key);
    });
  });
  return {.keys = {first, second, third, fourth}, .more = fifth != none};
}
static_assert(VirtualControl::registers == 4, "most_urgent() finds so many");

bool VirtualGic::pend_again(std::uint32_t id, std::uint32_t empty) const {
  for (std::uint32_t rest = ~empty & VirtualControl::all; rest != 0; rest &= rest - 1) {
    const auto at = static_cast<unsigned>(std::countr_zero(rest));
    if (listed_[at] != id) continue;
    const std::uint32_t entry = list_registers.list(at);
    if (!ListEntry::valid(entry)) continue;
    list_registers.set_list(at, entry | ListEntry::pending);
    return true;
  }
  return false;
}

void VirtualGic::wait_no_more(std::uint32_t id) {
  clear(waiting_, id);
  if (waiting_[id / 32] == 0) waiting_banks_ &= ~(1U << (id / 32));
}

void VirtualGic::ask(std::uint32_t control) {
  if (control == control_) return;
  control_ = control;
  list_registers.set_control(control);
}

void VirtualGic::flush() {
  if (!forwarding_ || waiting_banks_ == 0) {
    ask(VirtualControl::enable);
    return;
  }
  const MostUrgent found = most_urgent();
  std::uint32_t empty = list_registers.empty() & VirtualControl::all;
  bool more = found.more;
  for (const std::uint32_t key : found.keys) {
    if (key == MostUrgent::none) break;
    const std::uint32_t id = key & 0xFFFFU;
    if (!pend_again(id, empty)) {
      if (empty == 0) {
        more = true;
        break;
      }
      list(static_cast<unsigned>(std::countr_zero(empty)), id);
      empty &= empty - 1;
    }
    wait_no_more(id);
  }
  ask(VirtualControl::enable | (more ? when_to_refill() : 0));
}

/// Where all is active and nothing pends alone, nothing is missing before the guest has ended some:
/// the interrupt for that would be there again as soon as the guest goes on.
std::uint32_t VirtualGic::when_to_refill() {
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    if (ListEntry::only_pends(list_registers.list(i))) {
      return VirtualControl::interrupt_when_none_pending;
    }
  }
  return VirtualControl::interrupt_when_almost_empty;
}

/// The virtual timer's interrupt is one for all guests of a CPU: it is active while this one has
/// it.
void VirtualGic::load() {
  constexpr std::uint32_t timer = InterruptId::virtual_timer;
  bool has_timer = has(waiting_, timer);
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    if (list_[i] == 0) continue;
    list_registers.set_list(i, list_[i]);
    has_timer |= ListEntry::valid(list_[i]) && ListEntry::id(list_[i]) == timer;
  }
  list_registers.set_machine_state(machine_state_);
  list_registers.set_active_priorities(active_priorities_);
  control_ = VirtualControl::enable;
  list_registers.set_control(control_);
  loaded_ = true;
  if (has_timer) {
    board_distributor.set_active(timer);
  } else {
    board_distributor.clear_active(timer);
  }
  each_bit(routed_banks_, [this](std::uint32_t bank) {
    board_distributor.enable_all(bank, routed_[bank] & enabled_[bank]);
  });
  flush();
}

/// Reads and clears only what is in use: each access takes longer than many instructions.
void VirtualGic::save() {
  const std::uint32_t empty = list_registers.empty();
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    list_[i] = 0;
    if (((empty >> i) & 1U) != 0) continue;
    list_[i] = list_registers.list(i);
    list_registers.set_list(i, 0);
  }
  machine_state_ = list_registers.machine_state();
  active_priorities_ = list_registers.active_priorities();
  loaded_ = false;
  each_bit(routed_banks_, [this](std::uint32_t bank) {
    board_distributor.disable_all(bank, routed_[bank] & enabled_[bank]);
  });
}

void VirtualGic::take_back(std::uint32_t bank, std::uint32_t bits) {
  const std::uint32_t empty = list_registers.empty();
  for (unsigned i = 0; i < VirtualControl::registers; ++i) {
    const std::uint32_t id = listed_[i];
    const bool meant = id / 32 == bank && ((bits >> (id % 32)) & 1U) != 0;
    if (((empty >> i) & 1U) != 0 || !meant) continue;
    const std::uint32_t entry = list_registers.list(i);
    if ((entry & ListEntry::pending) == 0) continue;
    const bool is_active = (entry & ListEntry::active) != 0;
    list_registers.set_list(i, is_active ? entry & ~ListEntry::pending : 0);
    signal_later(id);
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
    write_forwarding((value & 1U) != 0);
  } else if (within(offset, set_enable, bank_end)) {
    write_enable(bank, value & existing(bank));
  } else if (within(offset, clear_enable, bank_end)) {
    write_disable(bank, value & existing(bank));
  } else if (within(offset, priorities, ids)) {
    for (unsigned i = 0; i < 4; ++i) {
      if (((mask >> (8 * i)) & 1U) != 0) write_priority(offset - priorities + i, value >> (8 * i));
    }
  } else if (offset == software_generated) {
    send_to_itself(value);
  }
}

void VirtualGic::write_forwarding(bool forwarding) {
  if (forwarding_ && !forwarding) {
    for (const std::uint32_t id : listed_) take_back(id / 32, 1U << (id % 32));
  }
  forwarding_ = forwarding;
  flush();
}

void VirtualGic::write_priority(std::uint32_t id, std::uint32_t value) {
  const bool exists = ((existing(id / 32) >> (id % 32)) & 1U) != 0;
  if (exists) priority_[id] = static_cast<std::uint8_t>(value);
}

void VirtualGic::write_enable(std::uint32_t bank, std::uint32_t bits) {
  enabled_[bank] |= bits;
  if ((bits & routed_[bank]) != 0) board_distributor.enable_all(bank, bits & routed_[bank]);
  flush();
}

/// What the board signals by a level is left to the board: it comes again if it is still there when
/// it is enabled again.
void VirtualGic::write_disable(std::uint32_t bank, std::uint32_t bits) {
  if (bank == 0) bits &= ~software_generated_ids;
  enabled_[bank] &= ~bits;
  take_back(bank, bits);
  const std::uint32_t of_devices = bits & routed_[bank];
  if (of_devices == 0) return;
  board_distributor.disable_all(bank, of_devices);
  each_id(bank, of_devices & waiting_[bank], [this](std::uint32_t id) {
    wait_no_more(id);
    board_distributor.clear_active(id);
  });
}

/// To others there is nobody to send to; the list of targets may name the guest's only CPU.
void VirtualGic::send_to_itself(std::uint32_t value) {
  const std::uint32_t filter = (value >> 24U) & 3U;
  const bool listed_itself = ((value >> 16U) & 1U) != 0;
  if (filter == 2 || (filter == 0 && listed_itself)) signal(value & 0xFU);
}

}  // namespace latenz::hypervisor
