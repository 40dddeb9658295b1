// SPDX-License-Identifier: Apache-2.0
// A CPU with a GICv2 and two timers whose time is a number, below the hypervisor's own Tdma and
// VirtualGic. Interrupts are signalled some ticks after their reason.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "basic_virtual_gic.hpp"
#include "dispatcher.hpp"
#include "gic_registers.hpp"
#include "latenz/system.hpp"
#include "latenz/time.hpp"
#include "list_entry.hpp"
#include "machine.hpp"

namespace fake {

using Tick = std::uint64_t;
inline constexpr Tick never = INT64_MAX;

/// A level-sensitive interrupt: signalled so many ticks after its reason came, while that is there.
struct Line {
  Tick since = never;  ///< its reason is there, or will be
  bool taken = false;  ///< and nothing has been done about its reason since

  [[nodiscard]] Tick signalled(Tick delay) const { return since == never ? never : since + delay; }
};

/// All that there is besides guests.
class Board {
 public:
  explicit Board(Tick delay) : delay_(delay) {}

  Tick now = 0;
  bool finished = false;

  // --- timers ------------------------------------------------------------------------------------

  /// A reason that is there already, and stays there, is the one that it was.
  void arm(std::uint32_t id, Tick compare) {
    Line& line = lines_[id];
    line.taken = false;
    const bool stays = line.since <= now && compare <= now;
    if (!stays) line.since = std::max(compare, now);
  }
  void stop(std::uint32_t id) { lines_[id] = {}; }

  // --- interrupts of this CPU --------------------------------------------------------------------

  /// When the next one is signalled that is not active.
  [[nodiscard]] Tick next_signal() const {
    Tick next = never;
    for (const std::uint32_t id : by_priority) {
      if (!is_active(id)) next = std::min(next, lines_[id].signalled(delay_));
    }
    return next;
  }

  /// The most urgent one that is signalled now, which becomes active.
  std::uint32_t acknowledge() {
    for (const std::uint32_t id : by_priority) {
      if (is_active(id) || lines_[id].signalled(delay_) > now) continue;
      set_active(id, true);
      lines_[id].taken = true;
      return id;
    }
    return latenz::hypervisor::InterruptId::spurious;
  }

  /// A timer's interrupt that is deactivated while its timer asks comes at once again.
  void set_active(std::uint32_t id, bool active) {
    const bool of_timer = id == InterruptId::slot_timer || id == InterruptId::arrival_timer;
    if (of_timer && !active && lines_[id].taken) {
      throw std::logic_error("an interrupt is deactivated before its timer is set");
    }
    active_[id] = active;
    is_written_ = true;
  }
  [[nodiscard]] bool is_active(std::uint32_t id) const { return active_[id]; }

  void set_enabled(std::uint32_t id, bool enabled) {
    enabled_[id] = enabled;
    is_written_ = true;
  }
  [[nodiscard]] bool is_enabled(std::uint32_t id) const { return enabled_[id]; }

  /// Writes to the interrupt controller have been waited for.
  void finish_writes() { is_written_ = false; }
  [[nodiscard]] bool has_unfinished_writes() const { return is_written_; }

  // --- list registers ----------------------------------------------------------------------------

  std::array<std::uint32_t, latenz::hypervisor::Gich::registers> list{};
  std::uint32_t machine_state = 0;
  std::uint32_t active_priorities = 0;

  void set_list(unsigned i, std::uint32_t value) {
    list[i] = value;
    is_written_ = true;
    look_at_maintenance();
  }
  void set_control(std::uint32_t value) {
    control_ = value;
    is_written_ = true;
    look_at_maintenance();
  }

  /// Arm IHI 0048B, 5.3.6: those that ended and asked for maintenance.
  [[nodiscard]] std::uint32_t ended() const {
    return each([](std::uint32_t entry) { return has_ended(entry); });
  }
  /// 5.3.7: those that can be written without losing anything.
  [[nodiscard]] std::uint32_t empty() const {
    return each([](std::uint32_t entry) { return !ListEntry::valid(entry) && !has_ended(entry); });
  }

 private:
  using ListEntry = latenz::hypervisor::Gicv2ListEntry;
  using Gich = latenz::hypervisor::Gich;
  using InterruptId = latenz::hypervisor::InterruptId;

  static constexpr std::array<std::uint32_t, 4> by_priority = {
      InterruptId::slot_timer, InterruptId::arrival_timer, InterruptId::maintenance,
      InterruptId::virtual_timer};

  static bool has_ended(std::uint32_t entry) {
    return !ListEntry::valid(entry) && (entry & ListEntry::hardware) == 0 &&
           (entry & ListEntry::maintenance) != 0;
  }

  template <typename Is>
  [[nodiscard]] std::uint32_t each(Is is) const {
    std::uint32_t found = 0;
    for (unsigned i = 0; i < list.size(); ++i) found |= is(list[i]) ? 1U << i : 0U;
    return found;
  }

  /// 5.3.4, 5.3.5.
  void look_at_maintenance() {
    const int valid = std::popcount(each(ListEntry::valid));
    const std::uint32_t pend =
        each([](std::uint32_t entry) { return (entry & ListEntry::pending) != 0; });
    const bool asked = ended() != 0 ||
                       ((control_ & Gich::interrupt_when_almost_empty) != 0 && valid <= 1) ||
                       ((control_ & Gich::interrupt_when_none_pending) != 0 && pend == 0);
    Line& line = lines_[InterruptId::maintenance];
    if (!asked || (control_ & Gich::enable) == 0) {
      line.since = never;
    } else {
      line.since = std::min(line.since, now);
    }
  }

  Tick delay_;
  std::uint32_t control_ = 0;
  std::array<Line, InterruptId::first_shared> lines_{};
  std::array<bool, InterruptId::end> active_{};
  std::array<bool, InterruptId::end> enabled_{};
  bool is_written_ = false;  ///< and not waited for
};

struct Lists {
  using Entry = latenz::hypervisor::Gicv2ListEntry;
  using ActivePriorities = std::uint32_t;

  Board* board;

  [[nodiscard]] std::uint32_t list(unsigned i) const { return board->list[i]; }
  [[nodiscard]] std::uint32_t ended() const { return board->ended(); }
  [[nodiscard]] std::uint32_t empty() const { return board->empty(); }
  [[nodiscard]] std::uint32_t machine_state() const { return board->machine_state; }
  [[nodiscard]] std::uint32_t active_priorities() const { return board->active_priorities; }
  void set_list(unsigned i, std::uint32_t value) const { board->set_list(i, value); }
  void set_control(std::uint32_t value) const { board->set_control(value); }
  void set_machine_state(std::uint32_t value) const { board->machine_state = value; }
  void set_active_priorities(std::uint32_t value) const { board->active_priorities = value; }
};

/// Enabled and active interrupts; they go to the only CPU.
struct Distributor {
  Board* board;

  void route(std::uint32_t /*id*/, std::uint32_t /*cpu*/) const {}
  void enable(std::uint32_t id) const { board->set_enabled(id, true); }
  void disable(std::uint32_t id) const { board->set_enabled(id, false); }
  void enable_all(std::uint32_t bank, std::uint32_t bits) const {
    each_of(bank, bits, [this](std::uint32_t id) { enable(id); });
  }
  void disable_all(std::uint32_t bank, std::uint32_t bits) const {
    each_of(bank, bits, [this](std::uint32_t id) { disable(id); });
  }
  void clear_all_active(std::uint32_t bank, std::uint32_t bits) const {
    each_of(bank, bits, [this](std::uint32_t id) { clear_active(id); });
  }
  void set_active(std::uint32_t id) const { board->set_active(id, true); }
  void clear_active(std::uint32_t id) const { board->set_active(id, false); }
  void set_pending(std::uint32_t /*id*/) const {}
  void trigger_by_edge(std::uint32_t /*id*/) const {}

 private:
  static void each_of(std::uint32_t bank, std::uint32_t bits, auto visit) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      if (((bits >> i) & 1U) != 0) visit((bank * 32) + i);
    }
  }
};

struct Gic {
  Board* board = nullptr;

  [[nodiscard]] Lists lists() const { return {board}; }
  [[nodiscard]] Distributor distributor() const { return {board}; }
};

}  // namespace fake
