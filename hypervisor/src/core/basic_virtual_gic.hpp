// SPDX-License-Identifier: Apache-2.0
// What a guest sees of interrupts: an emulated distributor of its own, in front of the hardware's
// virtual CPU interface. Freestanding.
//
// Members that are not in the class: basic_virtual_gic_members.hpp, for whoever makes one of a
// machine.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "gic_registers.hpp"
#include "list_entry.hpp"
#include "machine.hpp"

namespace latenz::hypervisor {

/// The distributor and the interrupts of one guest, which has one CPU.
///
/// An interrupt that is to be signalled waits in `waiting_` until the guest has enabled it and a
/// list register is empty; from then on the hardware has it, unless the guest disables it again.
///
/// Only software-generated interrupts, those that the guest owns and those of its sources exist;
/// all others read as zero and ignore writes. So no access takes longer than the configuration
/// allows.
template <Gic Hardware>
class BasicVirtualGic {
 public:
  static constexpr std::uint32_t ids = InterruptId::end;

  constexpr BasicVirtualGic() = default;
  explicit constexpr BasicVirtualGic(Hardware hardware) : hardware_(hardware) {}

  /// As after a reset: all disabled, nothing waits. Interrupts that belong to the guest stay its.
  void reset();

  /// The guest owns this interrupt of the board: it is signalled by hardware, which deactivates it
  /// when the guest ends it.
  void own(std::uint32_t id, bool shared) {
    set(owned_, id);
    existing_banks_ |= 1U << (id / 32);
    if (!shared) return;
    set(routed_, id);
    routed_banks_ |= 1U << (id / 32);
  }
  [[nodiscard]] bool owns(std::uint32_t id) const { return has(owned_, id); }

  /// Signals an interrupt as soon as that can be; the guest must be the one that runs.
  void signal(std::uint32_t id) {
    signal_later(id);
    flush();
  }
  /// The same, the short way, for one that is surely in no list register: where none is empty, it
  /// waits with the others, and nothing else can have changed.
  void signal_new(std::uint32_t id) {
    const std::uint32_t empty = lists().empty() & Gich::all;
    const bool can_be = forwarding_ && has(enabled_, id);
    if (can_be && empty != 0) {
      list(static_cast<unsigned>(std::countr_zero(empty)), id);
      return;
    }
    signal_later(id);
    if (can_be) ask(Gich::enable | when_to_refill());
  }
  /// The same later, when the guest runs.
  void signal_later(std::uint32_t id) {
    set(waiting_, id);
    waiting_banks_ |= 1U << (id / 32);
  }

  /// An interrupt whose end is told by a maintenance interrupt.
  void watch(std::uint32_t id) {
    set(watched_, id);
    existing_banks_ |= 1U << (id / 32);
  }

  /// The board's controller takes each edge as one interrupt; others come by levels.
  void comes_by_edge(std::uint32_t id) { set(edges_, id); }

  /// Moves what waits and is enabled into empty list registers; the guest must be the one that
  /// runs.
  void flush();

  /// The guest is to run, or no longer: then the board's interrupts that it owns wait as well.
  void load();
  void save();

  /// Serves the guest's access to its distributor, `offset` below 0x1000. What no register answers
  /// is read as zero and ignored.
  [[nodiscard]] std::uint32_t read(std::uint32_t offset, unsigned bytes) const;
  void write(std::uint32_t offset, unsigned bytes, std::uint32_t value);

  /// Interrupts whose end was watched and that have ended since the last call; the list registers
  /// are free again.
  template <typename Visit>
  void each_ended(Visit visit);

 private:
  using Lists = std::remove_cvref_t<decltype(std::declval<const Hardware&>().lists())>;
  using Entry = Lists::Entry;
  using EntryValue = Entry::Value;

  static_assert(ids % 32 == 0 && ids / 32 <= 32, "a bit for each bank");
  using Bits = std::uint32_t[ids / 32];
  static constexpr std::uint32_t software_generated_count = 16;
  static constexpr std::uint32_t software_generated_ids = (1U << software_generated_count) - 1;

  static bool has(const Bits& bits, std::uint32_t id) {
    return ((bits[id / 32] >> (id % 32)) & 1U) != 0;
  }
  static void set(Bits& bits, std::uint32_t id) { bits[id / 32] |= 1U << (id % 32); }
  static void clear(Bits& bits, std::uint32_t id) { bits[id / 32] &= ~(1U << (id % 32)); }

  /// Of its priority, what list registers have; less is more urgent.
  [[nodiscard]] std::uint32_t urgency_of(std::uint32_t id) const {
    return static_cast<std::uint32_t>(priority_[id]) >> 3U;
  }
  [[nodiscard]] EntryValue list_entry(std::uint32_t id) const {
    const EntryValue entry =
        id | Entry::group | Entry::pending | (EntryValue{urgency_of(id)} << Entry::priority_shift);
    if (has(owned_, id)) {
      return entry | Entry::hardware | (EntryValue{id} << Entry::physical_shift);
    }
    return has(watched_, id) ? entry | Entry::maintenance : entry;
  }
  /// Of those of a bank, the most urgent one: first by its priority, then by its ID.
  [[nodiscard]] std::uint32_t most_urgent(std::uint32_t bank, std::uint32_t bits) const;
  /// Of all that wait and are enabled; `none` if none does.
  [[nodiscard]] std::uint32_t most_urgent() const;
  static constexpr std::uint32_t none = ~0U;
  /// The others follow when the guest has taken these: so a visit stays short.
  static constexpr unsigned most_listed_at_once = 2;
  [[nodiscard]] bool any_wants_a_list_register() const;
  [[nodiscard]] std::uint32_t existing(std::uint32_t bank) const {
    return owned_[bank] | watched_[bank] | (bank == 0 ? software_generated_ids : 0);
  }
  void list(unsigned at, std::uint32_t id) {
    listed_[at] = static_cast<std::uint16_t>(id);
    lists().set_list(at, list_entry(id));
  }
  /// What waits and has a list register already, pends there once more.
  void pend_again(std::uint32_t empty);
  /// What of a bank pends in list registers waits again; what is active stays.
  void take_back(std::uint32_t bank, std::uint32_t bits);
  void wait_no_more(std::uint32_t id);
  /// All of the hardware but the list registers. The virtual timer's interrupt is one for all
  /// guests of a CPU: it is active while this one has it.
  void load_interface(bool has_timer);
  void ask(std::uint32_t control);
  [[nodiscard]] std::uint32_t when_to_refill() const;
  [[nodiscard]] std::uint32_t read_word(std::uint32_t offset) const;
  [[nodiscard]] std::uint32_t read_state(std::uint32_t offset) const;
  [[nodiscard]] std::uint32_t read_triggers(std::uint32_t offset) const;
  void write_word(std::uint32_t offset, std::uint32_t value, std::uint32_t mask);
  void write_enable(std::uint32_t bank, std::uint32_t bits);
  void write_disable(std::uint32_t bank, std::uint32_t bits);
  void write_forwarding(bool forwarding);
  void write_priority(std::uint32_t id, std::uint32_t value);
  void send_to_itself(std::uint32_t value);

  [[nodiscard]] decltype(auto) lists() const { return hardware_.lists(); }
  [[nodiscard]] decltype(auto) distributor() const { return hardware_.distributor(); }

  [[no_unique_address]] Hardware hardware_;
  std::uint16_t listed_[Gich::registers]{};  ///< ID in a list register that is not empty
  Bits enabled_{};
  Bits waiting_{};
  Bits owned_{};   ///< of the board
  Bits routed_{};  ///< of those, shared ones: the board's enable follows the guest's
  Bits watched_{};
  Bits edges_{};
  std::uint32_t waiting_banks_ = 0;  ///< bit for each bank in which one waits
  std::uint32_t routed_banks_ = 0;
  std::uint32_t existing_banks_ = 0;  ///< besides that of the software-generated ones
  alignas(8) std::uint8_t priority_[ids]{};
  bool forwarding_ = false;
  bool loaded_ = false;
  std::uint32_t control_ = 0;  ///< of the hardware, when the guest runs

  /// Of each bank, the bits of its priorities from the highest one on, an ID in each place.
  struct Urgencies {
    static constexpr unsigned bits = 5;  ///< of a priority, that list registers have
    std::uint32_t bit[bits];
  };
  Urgencies urgencies_[ids / 32]{};

  // While the guest does not run:
  EntryValue list_[Gich::registers]{};
  std::uint32_t machine_state_ = 0;
  Lists::ActivePriorities active_priorities_ = 0;
};

template <Gic Hardware>
template <typename Visit>
void BasicVirtualGic<Hardware>::each_ended(Visit visit) {
  std::uint32_t ended = lists().ended();
  for (unsigned i = 0; ended != 0; ++i, ended >>= 1U) {
    if ((ended & 1U) == 0) continue;
    const std::uint32_t id = Entry::id(lists().list(i));
    lists().set_list(i, 0);
    visit(id);
  }
}

}  // namespace latenz::hypervisor
