// SPDX-License-Identifier: Apache-2.0
// The hypervisor's own Tdma on a board whose time is a number. Decisions take the costs of a
// system. It keeps the same records of interrupts as a simulation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "basic_tdma_events.hpp"
#include "basic_tdma_visits.hpp"
#include "basic_virtual_gic_members.hpp"
#include "configuration.hpp"
#include "fake_board.hpp"
#include "latenz/simulator.hpp"
#include "latenz/system.hpp"

namespace fake {

using latenz::Duration;
using latenz::Instant;
using latenz::hypervisor::InterruptId;
using ListEntry = latenz::hypervisor::Gicv2ListEntry;

inline Tick ticks(Duration duration) { return static_cast<Tick>(duration.ns()); }

struct Vcpu {
  explicit Vcpu(Board& board) : gic(Gic(&board)) {}

  latenz::hypervisor::PartitionIndex partition = latenz::hypervisor::nobody;
  latenz::hypervisor::BasicVirtualGic<Gic> gic;
  Tick left = 0;  ///< of the bottom handler that is executed

  void load() { gic.load(); }
  void load_anew() const {}
  void save() { gic.save(); }
};

struct Partition {
  explicit Partition(Board& board) : vcpu(board) {}

  Vcpu vcpu;

  [[nodiscard]] static bool is_running() { return true; }
  [[nodiscard]] static std::uint64_t progress() { return 0; }
  [[nodiscard]] static std::uint16_t condition() { return 0; }
  [[nodiscard]] static bool is_watched() { return false; }
  [[nodiscard]] static latenz::hypervisor::Outcome watch(std::uint64_t /*tick*/, bool /*runs*/) {
    return latenz::hypervisor::Outcome::served;
  }
  void tell_first_slot(std::uint64_t tick) { first_slot = tick; }

  std::uint64_t first_slot = 0;
};

struct Interface {
  Board* board;

  void deactivate(std::uint32_t id) const { board->set_active(id, false); }
};

struct Processor {
  explicit Processor(Board& board) : idle(board), running(&idle), interface(&board) {}

  Vcpu idle;
  Vcpu* running;
  Interface interface;
  std::uint64_t longest_service = 0;
};

/// When the top handler of an interrupt that goes the short way takes its time.
enum class TopHandlers : std::uint8_t {
  first,    ///< before the guest gets the interrupt, as the rules have it
  put_off,  ///< when the hypervisor is entered next
};

/// What guests do.
enum class Guests : std::uint8_t {
  honest,    ///< execute their bottom handlers
  storming,  ///< serve their virtual timers only, which interrupt again at once: no handler ends
};

/// What the decisions of a dispatcher take, and what came of them.
struct Account {
  Board* board;
  const latenz::System* system;
  std::vector<latenz::IrqRecord> irqs;
  std::uint64_t visits = 0;  ///< in which the dispatcher was asked what runs
  bool top_is_paid = false;

  /// Slots and interrupts that came at the very instant at which a job had nothing to do any more.
  std::uint64_t ties = 0;
  Duration longest_overrun = Duration(INT64_MIN);  ///< of jobs, beyond their budgets

  void take(Duration time) const { board->now += ticks(time); }
};

/// The hypervisor's dispatcher; each decision takes what it costs.
class Dispatcher : public latenz::hypervisor::BasicDispatcher<64> {
 public:
  /// One for all: who makes a dispatcher knows of none.
  static inline Account* account_ = nullptr;

  // In place of the base's, which nobody calls through it.
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  void start_slot() {
    note_event(slot_end());
    BasicDispatcher::start_slot();
    take_beside_job(account_->system->table().slot_switch());
  }

  latenz::hypervisor::Top decide(std::uint16_t source, Instant arrival) {
    note_event(arrival);
    const latenz::hypervisor::Top top = BasicDispatcher::decide(source, arrival);
    if (!account_->top_is_paid) {
      take_beside_job(account_->system->sources()[source].top);
      if (top.asked) take_beside_job(account_->system->costs().monitor);
    }
    account_->top_is_paid = false;
    return top;
  }

  latenz::hypervisor::Finished finish_bottom(Instant now) {
    const latenz::hypervisor::Finished ended = BasicDispatcher::finish_bottom(now);
    account_->irqs.push_back({ended.source, ended.handling, ended.arrival, ended.top_start, now});
    if (in_job_ && queue(partition_).empty()) nothing_left_ = now;
    return ended;
  }

  latenz::hypervisor::Next next() {
    ++account_->visits;
    const latenz::hypervisor::Next next = BasicDispatcher::next();
    const latenz::Costs& costs = account_->system->costs();
    nothing_left_ = Instant::long_ago();
    in_job_ = next.interposed;
    if (next.job_started) begin_job(next, costs.schedule + costs.context_switch);
    if (next.job_ended) {
      account_->longest_overrun = std::max(account_->longest_overrun, time() - job_end_);
      account_->take(costs.context_switch);
    }
    return next;
  }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)

 private:
  [[nodiscard]] static Instant time() {
    return latenz::hypervisor::instant_of(account_->board->now);
  }

  void begin_job(const latenz::hypervisor::Next& next, Duration cost) {
    account_->take(cost);
    partition_ = next.partition;
    job_end_ = time() + next.budget;
    if (queue(partition_).empty()) nothing_left_ = time();
  }

  void take_beside_job(Duration time) {
    account_->take(time);
    job_end_ += time;
  }

  void note_event(Instant at) const { account_->ties += at == nothing_left_ ? 1 : 0; }

  bool in_job_ = false;
  latenz::hypervisor::PartitionIndex partition_ = 0;  ///< of the job
  Instant job_end_;                                   ///< at the latest
  Instant nothing_left_ = Instant::long_ago();        ///< the job had nothing to do from then on
};

struct Machine {
  using Dispatcher = fake::Dispatcher;
  using Partition = fake::Partition;
  using Processor = fake::Processor;
  using Vcpu = fake::Vcpu;

  Board* board = nullptr;

  [[nodiscard]] Tick now() const { return board->now; }
  [[nodiscard]] static std::uint64_t counter_hz() { return 1'000'000'000; }
  void arm_slot_timer(Tick tick) const { board->arm(InterruptId::slot_timer, tick); }
  void arm_arrival_timer(Tick tick) const { board->arm(InterruptId::arrival_timer, tick); }
  void stop_arrival_timer() const { board->stop(InterruptId::arrival_timer); }
  void finish_writes() const { board->finish_writes(); }
  [[nodiscard]] fake::Distributor distributor() const { return {board}; }
  [[nodiscard]] static bool any_running() { return true; }
  [[nodiscard]] static bool any_awaited() { return false; }
  void settle_errors(const Processor& /*processor*/) const {}
  void finish() const { board->finished = true; }
};

using Tdma = latenz::hypervisor::BasicTdma<Machine>;

/// The configuration that the hypervisor would get for a system.
class Configured {
 public:
  using Times = std::vector<std::vector<std::int64_t>>;
  static constexpr std::uint32_t first_interrupt = 40;

  Configured(const latenz::System& system, latenz::Mode mode, const Times& times)
      : configuration_(std::make_unique<latenz::hypervisor::Configuration>()) {
    configuration_->mode = static_cast<latenz::hypervisor::Mode>(mode);
    configuration_->partitions = static_cast<std::uint32_t>(system.partitions());
    for (const latenz::Slot& slot : system.table().slots()) {
      configuration_->slot[configuration_->slots++] = {
          .partition = slot.partition, .reserved = 0, .length_ns = ticks(slot.length)};
    }
    for (const latenz::Source& source : system.sources()) add(source);
    list(times);
  }

  /// Each source is limited to one IRQ in a period (R7).
  void limit(const std::vector<Tick>& periods) {
    for (std::size_t i = 0; i < periods.size(); ++i) {
      configuration_->source[i].limit_period_ns = periods[i];
    }
  }

  [[nodiscard]] const latenz::hypervisor::Configuration& operator*() const {
    return *configuration_;
  }

 private:
  void add(const latenz::Source& source) {
    const std::uint32_t index = configuration_->sources++;
    latenz::hypervisor::SourceEntry& entry = configuration_->source[index];
    entry.partition = source.partition;
    entry.interrupt = first_interrupt + index;
    entry.bottom_ns = ticks(source.bottom);
    entry.first_distance = distances_;
    if (!source.monitor) return;
    entry.flags = latenz::hypervisor::SourceEntry::monitored;
    for (const Duration each : source.monitor->closed()) {
      configuration_->distance_ns[distances_++] = each.ns();
      ++entry.distances;
    }
  }

  void list(const Times& times) {
    for (std::uint32_t i = 0; i < times.size(); ++i) {
      for (const std::int64_t at : times[i]) {
        arrivals_.push_back({.time_ns = static_cast<Tick>(at), .source = i, .reserved = 0});
      }
    }
    configuration_->arrivals = reinterpret_cast<std::uint64_t>(arrivals_.data());
    configuration_->arrival_count = arrivals_.size();
    configuration_->arrival_repeats = 1;
  }

  std::unique_ptr<latenz::hypervisor::Configuration> configuration_;
  std::vector<latenz::hypervisor::ArrivalEntry> arrivals_;
  std::uint32_t distances_ = 0;
};

/// A system on a board, from its first slot until every interrupt has been handled.
class Run {
 public:
  /// @param delay ticks from an interrupt's reason to its signal
  /// @param limits a period for each source (R7); without them there are none
  Run(const latenz::System& system, latenz::Mode mode, const Configured::Times& times, Tick delay,
      TopHandlers tops, Guests guests = Guests::honest, const std::vector<Tick>& limits = {})
      : system_(system),
        mode_(mode),
        configured_(system, mode, times),
        board_(delay),
        account_{.board = &board_, .system = &system, .irqs = {}},
        processor_(board_),
        tdma_(std::make_unique<Tdma>(Machine(&board_))),
        tops_(tops),
        guests_(guests) {
    Dispatcher::account_ = &account_;
    configured_.limit(limits);
    for (std::uint32_t i = 0; i < (*configured_).partitions; ++i) {
      partitions_.emplace_back(board_);
      begin(partitions_.back().vcpu, i);
    }
    processor_.idle.gic.reset();
    tdma_->prepare(*configured_, partitions_);
  }

  void run() {
    processor_.idle.load();
    Vcpu* runs = tdma_->start(processor_, 0);
    for (std::uint64_t steps = 0; !board_.finished; ++steps) {
      if (steps > most_steps) throw std::runtime_error("the hypervisor does not end");
      execute(*runs);
      if (board_.next_signal() <= board_.now) runs = interrupt();
    }
  }

  /// In the order of their ends, times from the first slot's start on.
  [[nodiscard]] std::vector<latenz::IrqRecord> irqs() const {
    std::vector<latenz::IrqRecord> found = account_.irqs;
    const Duration epoch = tdma_->run().epoch() - Instant();
    for (latenz::IrqRecord& each : found) {
      each.arrival = each.arrival - epoch;
      each.top_start = each.top_start - epoch;
      each.end = each.end - epoch;
    }
    return found;
  }

  [[nodiscard]] const Account& account() const { return account_; }
  /// How many interrupts went the short way.
  [[nodiscard]] std::uint64_t short_ways() const { return short_ways_; }

  /// Of a storming guest: from the end of its timer's interrupt to the next one.
  static constexpr Tick storm_period = 2;
  /// What the hypervisor takes to serve each.
  static constexpr Tick storm_visit = 7;

 private:
  static constexpr std::uint64_t most_steps = 10'000'000;

  /// Its interrupts belong to it, and its guest has switched them on.
  void begin(Vcpu& vcpu, std::uint32_t index) {
    using latenz::hypervisor::Gicd;
    vcpu.partition = static_cast<latenz::hypervisor::PartitionIndex>(index);
    vcpu.gic.own(InterruptId::virtual_timer, false);
    for (std::uint32_t i = 0; i < (*configured_).sources; ++i) {
      if (system_.sources()[i].partition == index) {
        vcpu.gic.watch(Configured::first_interrupt + i);
      }
    }
    vcpu.gic.reset();
    vcpu.gic.write(Gicd::control, 4, 1);
    for (std::uint32_t bank = 0; bank < 4; ++bank) {
      vcpu.gic.write(Gicd::set_enable + (4 * bank), 4, ~0U);
    }
  }

  // --- the guest that runs -----------------------------------------------------------------------

  void execute(Vcpu& guest) {
    if (guests_ == Guests::storming) {
      storm(guest);
    } else {
      serve_interrupts(guest);
    }
  }

  /// Until it is interrupted; a bottom handler that ends just then has ended.
  void serve_interrupts(Vcpu& guest) {
    const bool serves = guest.left > 0 || take_interrupt(guest);
    const Tick until = std::max(board_.now, board_.next_signal());
    if (!serves || board_.now + guest.left > until) {
      guest.left -= std::min(guest.left, until - board_.now);
      board_.now = until;
      return;
    }
    board_.now += guest.left;
    guest.left = 0;
    end_handler();
  }

  /// Ends its timer's interrupt, which the board's controller is told of (HW), and waits for more.
  void storm(const Vcpu& guest) {
    for (unsigned i = 0; i < board_.list.size(); ++i) {
      if (ListEntry::id(board_.list[i]) != InterruptId::virtual_timer) continue;
      board_.set_list(i, 0);
      board_.set_active(InterruptId::virtual_timer, false);
    }
    const bool has_timer = guest.partition != latenz::hypervisor::nobody;
    board_.stop(InterruptId::virtual_timer);
    if (has_timer) board_.arm(InterruptId::virtual_timer, board_.now + storm_period);
    board_.now = std::max(board_.now, board_.next_signal());
  }

  /// What is pending becomes active; false if nothing is.
  bool take_interrupt(Vcpu& guest) {
    for (unsigned i = 0; i < board_.list.size(); ++i) {
      if (!ListEntry::only_pends(board_.list[i])) continue;
      const std::uint32_t source = ListEntry::id(board_.list[i]) - Configured::first_interrupt;
      guest.left = ticks(system_.sources()[source].bottom);
      board_.set_list(i, (board_.list[i] & ~ListEntry::pending) | ListEntry::active);
      return true;
    }
    return false;
  }

  void end_handler() {
    for (unsigned i = 0; i < board_.list.size(); ++i) {
      if ((board_.list[i] & ListEntry::active) == 0) continue;
      board_.set_list(i, board_.list[i] & ~ListEntry::active);
      return;
    }
    throw std::logic_error("a handler without an interrupt");
  }

  // --- the hypervisor ----------------------------------------------------------------------------

  /// As Hypervisor::interrupt() does.
  Vcpu* interrupt() {
    const Tick entered = board_.now;
    board_.finish_writes();  // the guest's own
    const std::uint32_t id = board_.acknowledge();
    if (processor_.running->gic.owns(id)) {
      processor_.running->gic.signal_new(id);
      board_.now += storm_visit;
    }
    const std::uint64_t visits = account_.visits;
    Vcpu* const runs = tdma_->interrupt(processor_, entered, id);
    if (board_.has_unfinished_writes()) {
      throw std::logic_error("the guest goes on before the interrupt controller is told");
    }
    const bool short_way = account_.visits == visits;
    short_ways_ += short_way ? 1 : 0;
    if (short_way && tops_ == TopHandlers::first) pay_top_handler();
    return runs;
  }

  void pay_top_handler() {
    for (const std::uint32_t entry : board_.list) {
      if (!ListEntry::only_pends(entry)) continue;
      const latenz::Source& source =
          system_.sources()[ListEntry::id(entry) - Configured::first_interrupt];
      account_.take(source.top);
      if (mode_ == latenz::Mode::carry && source.monitor) account_.take(system_.costs().monitor);
      account_.top_is_paid = true;
    }
  }

  const latenz::System& system_;
  latenz::Mode mode_;
  Configured configured_;
  Board board_;
  Account account_;
  Processor processor_;
  std::vector<Partition> partitions_;
  std::unique_ptr<Tdma> tdma_;
  TopHandlers tops_;
  Guests guests_;
  std::uint64_t short_ways_ = 0;
};

}  // namespace fake
