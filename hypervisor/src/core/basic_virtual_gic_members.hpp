// SPDX-License-Identifier: Apache-2.0
// Members of BasicVirtualGic, for whoever makes one of a machine. Freestanding.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "basic_virtual_gic.hpp"
#include "gic_registers.hpp"

namespace latenz::hypervisor {

inline constexpr std::uint32_t identification_bytes[] = {0x04, 0x00, 0x00, 0x00, 0x90, 0xB4,
                                                         0x2B, 0x00, 0x0D, 0xF0, 0x05, 0xB1};
inline constexpr std::uint32_t bank_end =
    InterruptId::end / 8;  // bytes of registers with a bit an ID

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

template <Gic Hardware>
void BasicVirtualGic<Hardware>::reset() {
  each_bit(routed_banks_, [this](std::uint32_t bank) {
    distributor().disable_all(bank, routed_[bank]);
    distributor().clear_all_active(bank, routed_[bank]);
  });
  each_bit(existing_banks_ | 1U, [this](std::uint32_t bank) {
    enabled_[bank] = waiting_[bank] = 0;
    urgencies_[bank] = {};
#pragma GCC unroll 32  // several at a time
    for (unsigned i = 0; i < 32; ++i) priority_[(bank * 32) + i] = 0;
  });
  enabled_[0] = software_generated_ids;  // always on
  waiting_banks_ = 0;
  forwarding_ = false;
  machine_state_ = 0;
  active_priorities_ = 0;
  for (EntryValue& each : list_) each = 0;
  if (!loaded_) return;
  for (unsigned i = 0; i < Gich::registers; ++i) lists().set_list(i, 0);
  load_interface(false);
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::load_interface(bool has_timer) {
  lists().set_machine_state(machine_state_);
  lists().set_active_priorities(active_priorities_);
  control_ = Gich::enable;
  lists().set_control(control_);
  if (has_timer) {
    distributor().set_active(InterruptId::virtual_timer);
  } else {
    distributor().clear_active(InterruptId::virtual_timer);
  }
}

/// Bit by bit of the priorities: as many steps whatever waits.
template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::most_urgent(std::uint32_t bank, std::uint32_t bits) const {
  for (const std::uint32_t less_urgent : urgencies_[bank].bit) {
    const std::uint32_t kept = bits & ~less_urgent;
    bits = kept != 0 ? kept : bits;
  }
  return (bank * 32) + static_cast<std::uint32_t>(std::countr_zero(bits));
}

template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::most_urgent() const {
  std::uint32_t first = none;
  std::uint32_t urgency = none;
  for (std::uint32_t banks = waiting_banks_; banks != 0; banks &= banks - 1) {
    const auto bank = static_cast<std::uint32_t>(std::countr_zero(banks));
    const std::uint32_t bits = waiting_[bank] & enabled_[bank];
    if (bits == 0) continue;
    const std::uint32_t id = most_urgent(bank, bits);
    const std::uint32_t own = urgency_of(id);
    if (own >= urgency) continue;
    first = id;
    urgency = own;
  }
  return first;
}

template <Gic Hardware>
bool BasicVirtualGic<Hardware>::any_wants_a_list_register() const {
  bool any = false;
  each_bit(waiting_banks_,
           [&](std::uint32_t bank) { any |= (waiting_[bank] & enabled_[bank]) != 0; });
  return any;
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::pend_again(std::uint32_t empty) {
  for (std::uint32_t rest = ~empty & Gich::all; rest != 0; rest &= rest - 1) {
    const auto at = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t id = listed_[at];
    if (!has(waiting_, id) || !has(enabled_, id)) continue;
    const EntryValue entry = lists().list(at);
    if (!Entry::valid(entry)) continue;
    lists().set_list(at, entry | Entry::pending);
    wait_no_more(id);
  }
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::wait_no_more(std::uint32_t id) {
  clear(waiting_, id);
  if (waiting_[id / 32] == 0) waiting_banks_ &= ~(1U << (id / 32));
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::ask(std::uint32_t control) {
  if (control == control_) return;
  control_ = control;
  lists().set_control(control);
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::flush() {
  if (!forwarding_ || waiting_banks_ == 0) {
    ask(Gich::enable);
    return;
  }
  std::uint32_t empty = lists().empty() & Gich::all;
  pend_again(empty);
  for (unsigned i = 0; i < most_listed_at_once && empty != 0; ++i, empty &= empty - 1) {
    const std::uint32_t id = most_urgent();
    if (id == none) break;
    list(static_cast<unsigned>(std::countr_zero(empty)), id);
    wait_no_more(id);
  }
  ask(Gich::enable | (any_wants_a_list_register() ? when_to_refill() : 0));
}

/// Where all is active and nothing pends alone, nothing is missing before the guest has ended some:
/// the interrupt for that would be there again as soon as the guest goes on.
template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::when_to_refill() const {
  for (unsigned i = 0; i < Gich::registers; ++i) {
    if (Entry::only_pends(lists().list(i))) {
      return Gich::interrupt_when_none_pending;
    }
  }
  return Gich::interrupt_when_almost_empty;
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::load() {
  constexpr std::uint32_t timer = InterruptId::virtual_timer;
  bool has_timer = has(waiting_, timer);
  for (unsigned i = 0; i < Gich::registers; ++i) {
    if (list_[i] == 0) continue;
    lists().set_list(i, list_[i]);
    has_timer |= Entry::valid(list_[i]) && Entry::id(list_[i]) == timer;
  }
  load_interface(has_timer);
  loaded_ = true;
  each_bit(routed_banks_, [this](std::uint32_t bank) {
    distributor().enable_all(bank, routed_[bank] & enabled_[bank]);
  });
  flush();
}

/// Reads and clears only what is in use: each access takes longer than many instructions.
template <Gic Hardware>
void BasicVirtualGic<Hardware>::save() {
  for (EntryValue& each : list_) each = 0;
  each_bit(~lists().empty() & Gich::all, [this](std::uint32_t i) {
    list_[i] = lists().list(i);
    lists().set_list(i, 0);
  });
  machine_state_ = lists().machine_state();
  active_priorities_ = lists().active_priorities();
  loaded_ = false;
  each_bit(routed_banks_, [this](std::uint32_t bank) {
    distributor().disable_all(bank, routed_[bank] & enabled_[bank]);
  });
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::take_back(std::uint32_t bank, std::uint32_t bits) {
  const std::uint32_t empty = lists().empty();
  for (unsigned i = 0; i < Gich::registers; ++i) {
    const std::uint32_t id = listed_[i];
    const bool meant = id / 32 == bank && ((bits >> (id % 32)) & 1U) != 0;
    if (((empty >> i) & 1U) != 0 || !meant) continue;
    const EntryValue entry = lists().list(i);
    if ((entry & Entry::pending) == 0) continue;
    const bool is_active = (entry & Entry::active) != 0;
    lists().set_list(i, is_active ? entry & ~Entry::pending : 0);
    signal_later(id);
  }
}

template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::read(std::uint32_t offset, unsigned bytes) const {
  const std::uint32_t word = read_word(offset & ~3U) >> (8 * (offset % 4));
  return bytes == 4 ? word : word & ((1U << (8 * bytes)) - 1);
}

template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::read_state(std::uint32_t offset) const {
  const std::uint32_t bank = (offset % 0x80) / 4;
  if (offset < Gicd::set_pending) return enabled_[bank];
  std::uint32_t found = offset < Gicd::set_active ? waiting_[bank] : 0;
  const EntryValue wanted = offset < Gicd::set_active ? Entry::pending : Entry::active;
  for (unsigned i = 0; i < Gich::registers; ++i) {
    const EntryValue entry = lists().list(i);
    const std::uint32_t id = Entry::id(entry);
    if ((entry & wanted) != 0 && id / 32 == bank) found |= 1U << (id % 32);
  }
  return found;
}

template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::read_triggers(std::uint32_t offset) const {
  const std::uint32_t of_bank = edges_[(offset - Gicd::configuration) / 8];
  std::uint32_t found = 0;
  each_bit((offset % 8 == 0 ? of_bank : of_bank >> 16U) & 0xFFFFU,
           [&](std::uint32_t bit) { found |= Gicd::edge << (2 * bit); });
  return found;
}

template <Gic Hardware>
std::uint32_t BasicVirtualGic<Hardware>::read_word(std::uint32_t offset) const {
  if (offset == Gicd::control) return forwarding_ ? 1 : 0;
  if (offset == Gicd::type) return (ids / 32) - 1;  // one CPU
  if (offset == Gicd::implementer) return 0x43B;    // Arm, as a GIC-400
  if (offset >= Gicd::set_enable && offset < Gicd::priorities) {
    return offset % 0x80 < bank_end ? read_state(offset) : 0;
  }
  if (within(offset, Gicd::priorities, ids)) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) {
      word |= static_cast<std::uint32_t>(priority_[offset - Gicd::priorities + i]) << (8 * i);
    }
    return word;
  }
  if (within(offset, Gicd::targets, ids)) return 0x0101'0101;
  if (within(offset, Gicd::configuration, ids / 4)) return read_triggers(offset);
  if (within(offset, Gicd::identification, sizeof identification_bytes)) {
    return identification_bytes[(offset - Gicd::identification) / 4];
  }
  return 0;
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::write(std::uint32_t offset, unsigned bytes, std::uint32_t value) {
  const unsigned shift = 8 * (offset % 4);
  const std::uint32_t mask = (bytes == 4 ? ~0U : (1U << (8 * bytes)) - 1) << shift;
  write_word(offset & ~3U, (value << shift) & mask, mask);
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::write_word(std::uint32_t offset, std::uint32_t value,
                                           std::uint32_t mask) {
  const std::uint32_t bank = (offset % 0x80) / 4;
  if (offset == Gicd::control) {
    write_forwarding((value & 1U) != 0);
  } else if (within(offset, Gicd::set_enable, bank_end)) {
    write_enable(bank, value & existing(bank));
  } else if (within(offset, Gicd::clear_enable, bank_end)) {
    write_disable(bank, value & existing(bank));
  } else if (within(offset, Gicd::priorities, ids)) {
    for (unsigned i = 0; i < 4; ++i) {
      if (((mask >> (8 * i)) & 1U) != 0)
        write_priority(offset - Gicd::priorities + i, value >> (8 * i));
    }
  } else if (offset == Gicd::software_generated) {
    send_to_itself(value);
  }
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::write_forwarding(bool forwarding) {
  if (forwarding_ && !forwarding) {
    for (const std::uint32_t id : listed_) take_back(id / 32, 1U << (id % 32));
  }
  forwarding_ = forwarding;
  flush();
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::write_priority(std::uint32_t id, std::uint32_t value) {
  const bool exists = ((existing(id / 32) >> (id % 32)) & 1U) != 0;
  if (!exists) return;
  priority_[id] = static_cast<std::uint8_t>(value);
  std::uint32_t urgency = urgency_of(id);
  for (unsigned i = Urgencies::bits; i-- > 0; urgency >>= 1U) {
    std::uint32_t& bits = urgencies_[id / 32].bit[i];
    bits = (bits & ~(1U << (id % 32))) | ((urgency & 1U) << (id % 32));
  }
}

template <Gic Hardware>
void BasicVirtualGic<Hardware>::write_enable(std::uint32_t bank, std::uint32_t bits) {
  enabled_[bank] |= bits;
  if ((bits & routed_[bank]) != 0) distributor().enable_all(bank, bits & routed_[bank]);
  flush();
}

/// What the board signals by a level is left to the board: it comes again if it is still there when
/// it is enabled again. What came by an edge waits here.
template <Gic Hardware>
void BasicVirtualGic<Hardware>::write_disable(std::uint32_t bank, std::uint32_t bits) {
  if (bank == 0) bits &= ~software_generated_ids;
  enabled_[bank] &= ~bits;
  take_back(bank, bits);
  const std::uint32_t of_devices = bits & routed_[bank];
  if (of_devices == 0) return;
  distributor().disable_all(bank, of_devices);
  each_id(bank, of_devices & waiting_[bank] & ~edges_[bank], [this](std::uint32_t id) {
    wait_no_more(id);
    distributor().clear_active(id);
  });
}

/// To others there is nobody to send to; the list of Gicd::targets may name the guest's only CPU.
template <Gic Hardware>
void BasicVirtualGic<Hardware>::send_to_itself(std::uint32_t value) {
  const std::uint32_t filter = (value >> 24U) & 3U;
  const bool listed_itself = ((value >> 16U) & 1U) != 0;
  if (filter == 2 || (filter == 0 && listed_itself)) signal(value & 0xFU);
}

}  // namespace latenz::hypervisor
