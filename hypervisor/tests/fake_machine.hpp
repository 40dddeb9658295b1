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
  std::uint16_t first_source = 0;  ///< of the system, in the configuration
  std::vector<latenz::IrqRecord> irqs;
  std::uint64_t visits = 0;  ///< in which the dispatcher was asked what runs
  bool top_is_paid = false;

  /// Slots and interrupts that came at the very instant at which a job had nothing to do any more.
  std::uint64_t ties = 0;
  Duration longest_overrun = Duration(INT64_MIN);  ///< of jobs, beyond their budgets

  void take(Duration time) const { board->now += ticks(time); }
  [[nodiscard]] const latenz::Source& source(std::uint16_t index) const {
    return system->sources()[index - first_source];
  }
};

/// The hypervisor's dispatcher; each decision takes what it costs.
class Dispatcher : public latenz::hypervisor::BasicDispatcher<64> {
 public:
  /// That of the CPU that does something: who makes a dispatcher knows of none.
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
      take_beside_job(account_->source(source).top);
      if (top.asked) take_beside_job(account_->system->costs().monitor);
    }
    account_->top_is_paid = false;
    return top;
  }

  latenz::hypervisor::Finished finish_bottom(Instant now) {
    const latenz::hypervisor::Finished ended = BasicDispatcher::finish_bottom(now);
    const auto source = static_cast<std::uint16_t>(ended.source - account_->first_source);
    account_->irqs.push_back({source, ended.handling, ended.arrival, ended.top_start, now});
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
  [[nodiscard]] static Tick first_slot(Tick earliest) { return earliest; }
  [[nodiscard]] static Tick first_cycle(Tick earliest) { return earliest; }
  void settle_errors(const Processor& /*processor*/) const {}
  void end_run(std::uint32_t /*cpu*/) const { board->finished = true; }
};

using Tdma = latenz::hypervisor::BasicTdma<Machine>;

/// The configuration that the hypervisor would get for systems that have a CPU each.
class Configured {
 public:
  using Times = std::vector<std::vector<std::int64_t>>;
  static constexpr std::uint32_t first_interrupt = 40;

  explicit Configured(latenz::Mode mode)
      : configuration_(std::make_unique<latenz::hypervisor::Configuration>()) {
    configuration_->mode = static_cast<latenz::hypervisor::Mode>(mode);
  }

  void add(const latenz::System& system, std::uint32_t cpu, const Times& times,
           const std::vector<Tick>& limits) {
    const std::uint32_t first = configuration_->partitions;
    const std::uint32_t first_source = configuration_->sources;
    configuration_->partitions += static_cast<std::uint32_t>(system.partitions());
    for (std::uint32_t i = first; i < configuration_->partitions; ++i) {
      configuration_->partition[i].cpu = cpu;
    }
    for (const latenz::Slot& slot : system.table().slots()) {
      configuration_->slot[configuration_->slots++] = {
          .partition = first + slot.partition, .reserved = 0, .length_ns = ticks(slot.length)};
    }
    for (const latenz::Source& source : system.sources()) add(source, first);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      configuration_->source[first_source + i].limit_period_ns = limits[i];
    }
    list(times, first_source);
  }

  [[nodiscard]] const latenz::hypervisor::Configuration& operator*() const {
    return *configuration_;
  }

 private:
  void add(const latenz::Source& source, std::uint32_t first_partition) {
    const std::uint32_t index = configuration_->sources++;
    latenz::hypervisor::SourceEntry& entry = configuration_->source[index];
    entry.partition = first_partition + source.partition;
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

  void list(const Times& times, std::uint32_t first_source) {
    for (std::uint32_t i = 0; i < times.size(); ++i) {
      for (const std::int64_t at : times[i]) {
        arrivals_.push_back(
            {.time_ns = static_cast<Tick>(at), .source = first_source + i, .reserved = 0});
      }
    }
    configuration_->arrivals = reinterpret_cast<std::uint64_t>(arrivals_.data());
    configuration_->arrival_count = arrivals_.size();
  }

  std::unique_ptr<latenz::hypervisor::Configuration> configuration_;
  std::vector<latenz::hypervisor::ArrivalEntry> arrivals_;
  std::uint32_t distances_ = 0;
};

/// What CPUs of a board have together.
struct Together {
  explicit Together(latenz::Mode mode) : configured(mode), room(std::make_unique<Room>()) {}

  using Room = Dispatcher::Room;

  /// All that is configured is.
  void plan_all() { plan.make(*configured, latenz::hypervisor::Clock(Machine::counter_hz())); }

  Configured configured;
  latenz::hypervisor::TdmaPlan plan;
  std::unique_ptr<Room> room;
  std::vector<Partition> partitions;
};

/// A system on a CPU, from its first slot until every interrupt has been handled. Each CPU of a
/// board has a time of its own.
class Run {
 public:
  /// @param delay ticks from an interrupt's reason to its signal
  /// @param limits a period for each source (R7); without them there are none
  Run(const latenz::System& system, latenz::Mode mode, const Configured::Times& times, Tick delay,
      TopHandlers tops, Guests guests = Guests::honest, const std::vector<Tick>& limits = {})
      : Run(std::make_shared<Together>(mode), 0, system, mode, times, delay, tops, guests, limits) {
    prepare();
  }

  /// On a CPU of a board that has several: when all of them are made, each is to be prepared.
  Run(std::shared_ptr<Together> together, std::uint32_t cpu, const latenz::System& system,
      latenz::Mode mode, const Configured::Times& times, Tick delay, TopHandlers tops,
      Guests guests, const std::vector<Tick>& limits)
      : system_(system),
        mode_(mode),
        together_(std::move(together)),
        cpu_(cpu),
        board_(delay),
        account_{.board = &board_,
                 .system = &system,
                 .first_source = static_cast<std::uint16_t>((*together_->configured).sources),
                 .irqs = {}},
        processor_(board_),
        tdma_(std::make_unique<Tdma>(Machine(&board_))),
        tops_(tops),
        guests_(guests) {
    together_->configured.add(system, cpu, times, limits);
    for (auto i = together_->partitions.size(); i < (*together_->configured).partitions; ++i) {
      together_->partitions.emplace_back(board_);
      begin(together_->partitions.back().vcpu, static_cast<std::uint32_t>(i));
    }
    processor_.idle.gic.reset();
  }

  void prepare() {
    if (cpu_ == 0) together_->plan_all();
    tdma_->prepare(together_->plan, cpu_, together_->partitions, *together_->room);
  }

  /// Until it has done all.
  void run() {
    start();
    for (std::uint64_t steps = 0; !done(); ++steps) {
      if (steps > most_steps) throw std::runtime_error("the hypervisor does not end");
      step();
    }
  }

  void start() {
    Dispatcher::account_ = &account_;
    processor_.idle.load();
    runs_ = tdma_->start(processor_, 0);
  }

  /// Until the next interrupt has been served, or the guest has done something.
  void step() {
    Dispatcher::account_ = &account_;
    execute(*runs_);
    if (board_.next_signal() <= board_.now) runs_ = interrupt();
  }

  [[nodiscard]] bool done() const { return board_.finished; }

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
    for (std::uint32_t i = 0; i < (*together_->configured).sources; ++i) {
      if ((*together_->configured).source[i].partition == index) {
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
      guest.left = ticks(source_of(board_.list[i]).bottom);
      board_.set_list(i, (board_.list[i] & ~ListEntry::pending) | ListEntry::active);
      return true;
    }
    return false;
  }

  [[nodiscard]] const latenz::Source& source_of(std::uint32_t entry) const {
    return account_.source(
        static_cast<std::uint16_t>(ListEntry::id(entry) - Configured::first_interrupt));
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
      const latenz::Source& source = source_of(entry);
      account_.take(source.top);
      if (mode_ == latenz::Mode::carry && source.monitor) account_.take(system_.costs().monitor);
      account_.top_is_paid = true;
    }
  }

  const latenz::System& system_;
  latenz::Mode mode_;
  std::shared_ptr<Together> together_;
  std::uint32_t cpu_;
  Board board_;
  Account account_;
  Processor processor_;
  std::unique_ptr<Tdma> tdma_;
  Vcpu* runs_ = nullptr;
  TopHandlers tops_;
  Guests guests_;
  std::uint64_t short_ways_ = 0;
};

}  // namespace fake
