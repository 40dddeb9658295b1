// SPDX-License-Identifier: Apache-2.0
// A partition: its guest, the memory and devices it may reach, and what became of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aarch64/system_registers.hpp"
#include "aarch64/translation_table.hpp"
#include "aarch64/vcpu.hpp"
#include "aarch64/virtual_console.hpp"
#include "configuration.hpp"
#include "health.hpp"
#include "latenz/guest_machine.hpp"
#include "machine.hpp"

namespace latenz::hypervisor {

class Partition {
 public:
  enum class State : std::uint8_t {
    running,
    stopped,  ///< after a fault
    off,      ///< by its own will
  };

  /// Builds its address space; false if the configuration cannot be carried out.
  [[nodiscard]] bool build(const Configuration& configuration, std::uint32_t index);

  /// Starts its guest from its pristine images: at once if it is the one that runs, else when it
  /// runs next.
  void restart();

  [[nodiscard]] bool is_running() const { return state() == State::running; }
  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }
  /// Its devices stay silent from then on.
  void end(State how) {
    state_.store(how, std::memory_order_release);
    vcpu.gic.reset();
    note_condition();
  }

  /// A guest did what it must not: its health table says what becomes of that. One that does not
  /// run any more is told of only.
  ///
  /// @param what  lives on
  /// @return served if it goes on
  Outcome fault(const char* what, std::uint64_t address) {
    return react(entry_->on_fault, what, ElrEl2::read(), address);
  }

  [[nodiscard]] bool is_watched() const { return health_.is_watched(); }
  /// Its watchdog, at the start of its slot; as fault().
  /// @param runs whether the CPU executes it already
  Outcome watch(std::uint64_t tick, bool runs);

  [[nodiscard]] std::string_view name() const { return text_of(entry_->name); }
  [[nodiscard]] std::uint32_t cpu() const { return entry_->cpu; }
  [[nodiscard]] std::uint64_t progress() const;
  /// @param tick when the first slot begins
  void tell_first_slot(std::uint64_t tick);
  [[nodiscard]] const Health& health() const { return health_; }
  /// State and faults, as the trace has them: see TraceKind::progress.
  [[nodiscard]] std::uint16_t condition() const { return condition_; }
  [[nodiscard]] std::uint32_t restarts() const { return restarts_; }
  [[nodiscard]] bool awaited() const {
    return (entry_->flags & PartitionEntry::says_ready) != 0 && is_running() &&
           !ready_.load(std::memory_order_acquire);
  }
  void say_ready() { ready_.store(true, std::memory_order_release); }
  [[nodiscard]] bool has_console() const {
    return (entry_->flags & PartitionEntry::has_console) != 0;
  }

  Vcpu vcpu;
  VirtualConsole console;

 private:
  void note_condition();
  Outcome react(Reaction reaction, const char* what, std::uint64_t program_counter,
                std::uint64_t address);
  void tell(const Configuration& configuration, std::uint32_t index);
  void tell_slots(const Configuration& configuration);
  void tell_channels(const Configuration& configuration, std::uint32_t index);
  [[nodiscard]] bool map(const Configuration& configuration, std::uint32_t index);
  [[nodiscard]] bool map_machine();
  void forget_translations() const;
  void clean(const Configuration& configuration, std::uint32_t index) const;
  void own_interrupts(const Configuration& configuration, std::uint32_t index);

  const PartitionEntry* entry_ = nullptr;
  TranslationTable table_;
  std::atomic<State> state_ = State::running;  ///< other CPUs look at it, and at the next
  std::atomic<bool> ready_ = false;
  Health health_;
  std::uint16_t condition_ = 0;
  std::uint32_t restarts_ = 0;
  alignas(TranslationTable::page) InformationPage information_{};
  alignas(TranslationTable::page) ReportPage report_{};
  alignas(TranslationTable::page) std::uint8_t end_of_report_[1]{};
};

}  // namespace latenz::hypervisor
