// SPDX-License-Identifier: Apache-2.0
// Decides which partition runs and what becomes of its interrupts: the rules R1 to R7 of
// docs/rules.md, for a hypervisor to carry out. Freestanding: no heap, no division, no atomics.
//
// The hypervisor calls it with interrupts masked. Each time that it is entered:
//
//   1. what the guest has done: charge(), then finish_bottom() if a bottom handler has ended;
//   2. events that are due, in the order of their times, slot edges before arrivals of the same
//      time (R1, R6): start_slot() when slot_end() has come, then unmask(); for an interrupt
//      raise() if permits() says so, else its source is to be masked at the interrupt controller
//      (R7);
//   3. next(). When it starts or ends a job: that context switch is carried out, and all goes on
//      with 2. Otherwise the partition it says runs, until an interrupt comes, the slot ends, or
//      its budget is used up.
//
// All times have one unit and one origin, whatever they are.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "configuration.hpp"
#include "decisions.hpp"
#include "dispatcher_plan.hpp"
#include "interposed_jobs.hpp"
#include "irq_queue.hpp"
#include "late.hpp"
#include "latenz/handling.hpp"
#include "latenz/time.hpp"
#include "slot_cycle.hpp"
#include "source_monitor.hpp"
#include "statistics.hpp"

namespace latenz::hypervisor {

/// What dispatchers keep of each source and each partition, which have one CPU. All zero until they
/// begin, so that a static one takes no place in an image.
template <std::size_t QueueCapacity>
struct DispatcherRoom {
  struct Source {
    PartitionIndex partition = 0;
    bool limited = false;
    Duration bottom;
    Instant permitted_from;  ///< by its limit
    SourceStatistics statistics;
    SourceMonitor monitor;
    Late<Limit> limit;
  };

  struct Partition {
    bool stopped = false;
    std::uint16_t last_moved_in = 0;  ///< source of the last one that had waited
    std::uint64_t outside = 0;        ///< IRQs that wait for room in the queue
    Instant own_since;                ///< start of the last slot that made the partition the owner
    IrqQueue<QueueCapacity> queue;
    InterposedJobs<QueueCapacity> jobs;
  };

  std::array<Source, Configuration::most_sources> sources;
  std::array<Partition, Configuration::most_partitions> partitions;
};

/// One for a processor. It has no constructor to run; use() and begin() come first. What it does
/// for an event takes a bounded number of steps, whatever is pending: l in the monitor, the
/// partitions for the order of their jobs, the sources where a queue had been full.
///
/// An IRQ that finds its partition's queue full waits outside, only counted: the monitor is not
/// asked, it is `delayed` whatever the slot, and enters the queue when there is room, before any
/// that come later. Its arrival is not kept; statistics count it as untimed.
template <std::size_t QueueCapacity>
class BasicDispatcher {
 public:
  using Queue = IrqQueue<QueueCapacity>;
  using Room = DispatcherRoom<QueueCapacity>;

  /// Once, before all else. Of the room it touches what is of its CPU: it may be others', too.
  void use(Room& room) {
    sources_ = room.sources.data();
    partitions_ = room.partitions.data();
  }

  /// Forgets all. What the plan refers to must live on.
  void begin(const DispatcherPlan& plan) {
    planned_ = plan.sources;
    own_partitions_ = plan.own_partitions;
    cycle_.begin(plan.slots, plan.epoch);
    mode_ = plan.mode;
    running_ = nobody;
    job_ = {};
    orders_ = pending_ = 0;
    ready_ = masked_ = 0;
    begin_partitions();
    begin_sources();
  }

  // --- R1: events, in the order of their times ---------------------------------------------------

  /// The next slot of the table begins; the first time the first one.
  void start_slot() {
    const PartitionIndex before = owner();
    cycle_.advance();
    const PartitionIndex after = owner();
    if (after == before) return;
    if (before != nobody && mode_ == Mode::carry) {
      partitions_[before].jobs.release(++orders_);
      note_ready(before);
    }
    partitions_[after].jobs.drop_ready();
    partitions_[after].own_since = cycle_.start();
    note_ready(after);
  }

  /// R7: whether a source's limit permits an IRQ at this time. If not, nothing else becomes of it,
  /// and the source is masked until unmask() names it.
  [[nodiscard]] bool permits(std::uint16_t index, Instant arrival) {
    Source& source = sources_[index];
    if (arrival >= source.permitted_from) return true;
    ++source.statistics.masked;
    masked_ |= bit(index);
    return false;
  }

  [[nodiscard]] bool is_masked(std::uint16_t index) const { return (masked_ & bit(index)) != 0; }
  [[nodiscard]] bool any_masked() const { return masked_ != 0; }
  [[nodiscard]] BitSet masked() const { return masked_; }
  /// The earliest time at which the limit permits an IRQ.
  [[nodiscard]] Instant permitted_from(std::uint16_t index) const {
    return sources_[index].permitted_from;
  }

  /// R7: the masked sources whose limits permit an IRQ at the slot's start. They are masked no
  /// more; an IRQ that waits arrives at that time.
  BitSet unmask() {
    BitSet found = 0;
    for (BitSet rest = masked_; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (sources_[index].permitted_from <= slot_start()) found |= bit(index);
    }
    masked_ &= ~found;
    return found;
  }

  /// First half of a top handler, which may ask the monitor: what becomes of an IRQ that arrived
  /// then. Whoever owned the slot at that time counts, even if another slot has begun since.
  [[nodiscard]] Top decide(std::uint16_t index, Instant arrival) {
    Source& source = sources_[index];
    const Partition& partition = partitions_[source.partition];
    const bool foreign = cycle_.owner_at(arrival) != source.partition;
    const bool asks = source.monitor.is_on() && (foreign || mode_ == Mode::carry);
    if (source.monitor.is_learning()) [[unlikely]] {
      source.monitor.learn(arrival);
    }
    if (partition.stopped || partition.queue.full()) return {.handling = Handling::delayed};
    Top top = {.handling = foreign ? Handling::delayed : Handling::direct};
    top.asked = asks && !partition.jobs.full();
    top.accepted = top.asked && source.monitor.accept(arrival);
    if (foreign && top.accepted) top.handling = Handling::interposed;
    return top;
  }

  /// Second half: into the queue.
  /// @param now start of the top handler
  void enqueue(std::uint16_t index, Instant arrival, Instant now, Top top) {
    Source& source = sources_[index];
    Partition& partition = partitions_[source.partition];
    count(source.statistics, top);
    if (source.limited) note_for_limit(source, arrival);
    if (partition.stopped) {
      ++source.statistics.dropped;
      return;
    }
    ++pending_;
    if (partition.queue.full()) {
      ++source.statistics.overflowed;
      ++source.statistics.outside;
      ++partition.outside;
      return;
    }
    if (top.accepted) grant(index, arrival);
    partition.queue.push({arrival, now, index, top.handling, true});
  }

  /// Both halves.
  Top raise(std::uint16_t source, Instant arrival, Instant now) {
    const Top top = decide(source, arrival);
    enqueue(source, arrival, now, top);
    return top;
  }

  // --- what a guest has done ---------------------------------------------------------------------

  /// The running partition has executed so long since the last call; comes before finish_bottom().
  void charge(Duration executed) {
    if (!job_.active || executed <= Duration()) return;
    job_.budget = executed < job_.budget ? job_.budget - executed : Duration();
    job_.in_handler = true;
  }

  /// The bottom handler at the head of the running partition's queue has ended.
  Finished finish_bottom(Instant now) {
    if (running_ == nobody || partitions_[running_].queue.empty()) return {};
    Partition& partition = partitions_[running_];
    const PendingIrq irq = partition.queue.head();
    partition.jobs.complete(partition.queue.first());
    partition.queue.pop();
    --pending_;
    job_.in_handler = false;
    if (partition.outside > 0) [[unlikely]] {
      move_in(running_, now);
    }
    const Duration latency = now - irq.arrival;
    SourceStatistics& statistics = sources_[irq.source].statistics;
    irq.timed ? statistics.count_completed(latency) : statistics.count_untimed();
    return {true, irq.handling, irq.timed, irq.source, irq.arrival, irq.top_start, latency};
  }

  // --- R2, R3: what runs -------------------------------------------------------------------------

  /// One step: ends the job that runs, or starts the next, or says who runs. While a job runs it
  /// only ends that; so it may be called before events of the very instant at which the job's
  /// bottom handler or its budget has ended (R6).
  Next next() {
    if (job_.active) return job_is_over() ? end_job() : run_job();
    if (ready_ != 0) return start_job();
    running_ = owner() != nobody && partitions_[owner()].stopped ? nobody : owner();
    return {.partition = running_};
  }

  // --- faults ------------------------------------------------------------------------------------

  /// The partition's guest starts afresh. Its pending IRQs are kept, and so are their jobs; the
  /// bottom handler that was executed starts afresh too. If it was in a job, that ends.
  void restart(PartitionIndex index) {
    partitions_[index].stopped = false;
    if (job_.active && job_.partition == index) {
      job_.budget = Duration();
      job_.in_handler = false;
    }
  }

  /// The partition never runs again, unless restarted. Its pending IRQs, and those that come, are
  /// counted as dropped; they are known by source, however many wait.
  void stop(PartitionIndex index) {
    Partition& partition = partitions_[index];
    for (std::size_t i = 0; i < sources(); ++i) {
      if (planned_[i].partition != index) continue;
      SourceStatistics& statistics = sources_[i].statistics;
      const std::uint64_t pending = statistics.pending();
      statistics.dropped += pending;
      statistics.outside = 0;
      pending_ -= pending;
    }
    partition.outside = 0;
    partition.queue.clear();
    partition.jobs.clear();
    note_ready(index);
    partition.stopped = true;
  }

  // --- what is -----------------------------------------------------------------------------------

  /// Of the slot that has begun last. Before the first, the end is the epoch.
  [[nodiscard]] Instant slot_start() const { return cycle_.start(); }
  [[nodiscard]] Instant slot_end() const { return cycle_.end(); }
  [[nodiscard]] std::size_t slot() const { return cycle_.index(); }
  [[nodiscard]] PartitionIndex owner() const { return cycle_.owner(); }

  /// No IRQ is pending, no job waits or runs.
  [[nodiscard]] bool idle() const { return pending_ == 0 && ready_ == 0 && !job_.active; }

  [[nodiscard]] const Queue& queue(PartitionIndex index) const { return partitions_[index].queue; }
  [[nodiscard]] bool stopped(PartitionIndex index) const { return partitions_[index].stopped; }
  /// Those of all CPUs.
  [[nodiscard]] std::size_t sources() const { return planned_.size(); }
  /// Whether a source is of this CPU.
  [[nodiscard]] bool has(std::uint16_t source) const {
    return (own_partitions_ & bit(planned_[source].partition)) != 0;
  }

  [[nodiscard]] const SourceStatistics& statistics(std::uint16_t source) const {
    return sources_[source].statistics;
  }
  [[nodiscard]] const SourceMonitor& monitor(std::uint16_t source) const {
    return sources_[source].monitor;
  }

 private:
  using Source = Room::Source;
  using Partition = Room::Partition;

  static_assert(Configuration::most_partitions <= 32 && Configuration::most_sources <= 32,
                "a BitSet has a bit for each");

  struct Job {
    bool active = false;
    bool in_handler = false;  ///< it has executed a part of the queue's head
    PartitionIndex partition = 0;
    std::uint16_t source = 0;
    Duration budget;
  };

  void begin_partitions() {
    for (std::uint32_t i = 0; i < Configuration::most_partitions; ++i) {
      if ((own_partitions_ & bit(i)) == 0) continue;
      Partition& partition = partitions_[i];
      partition.queue.clear();
      partition.jobs.clear();
      partition.outside = 0;
      partition.last_moved_in = 0;
      partition.stopped = false;
      partition.own_since = Instant::long_ago();
    }
  }

  void begin_sources() {
    const auto count = static_cast<std::uint16_t>(sources());
    for (std::uint16_t i = 0; i < count; ++i) {
      if (!has(i)) continue;
      const PlannedSource& planned = planned_[i];
      Source& source = sources_[i];
      source.partition = planned.partition;
      source.bottom = planned.bottom;
      source.limited = planned.limit != nullptr;
      source.permitted_from = Instant::long_ago();
      if (source.limited) source.limit.make(*planned.limit);
      source.monitor.begin(planned, mode_);
      source.statistics.begin();
    }
  }

  // --- top handlers ------------------------------------------------------------------------------

  /// As many steps as the limit has distances.
  [[gnu::noinline]] static void note_for_limit(Source& source, Instant arrival) {
    source.limit->record(arrival);
    source.permitted_from = source.limit->earliest();
  }

  static void count(SourceStatistics& statistics, Top top) {
    statistics.count_raised(top.handling);
    statistics.asked += top.asked ? 1 : 0;
    statistics.denied += top.asked && !top.accepted ? 1 : 0;
  }

  /// The next IRQ in the queue was accepted: it gets a job, unless its own slot has begun since it
  /// arrived (R5); then mode carry remembers it.
  void grant(std::uint16_t index, Instant arrival) {
    const PartitionIndex target = sources_[index].partition;
    Partition& partition = partitions_[target];
    const std::uint64_t irq = partition.queue.end();
    if (owner() != target && (mode_ == Mode::carry || partition.own_since <= arrival)) {
      partition.jobs.add_ready(irq, index, ++orders_);
      ready_ |= bit(target);
    } else if (mode_ == Mode::carry) {
      partition.jobs.add_unready(irq, index);
    }
  }

  // --- queues that have been full ----------------------------------------------------------------

  /// The queue has room: takes one from outside, from one source after the other.
  [[gnu::noinline]] void move_in(PartitionIndex index, Instant now) {
    Partition& partition = partitions_[index];
    std::uint16_t source = partition.last_moved_in;
    do {
      source = static_cast<std::uint16_t>(source + 1U < sources() ? source + 1U : 0U);
    } while (planned_[source].partition != index || sources_[source].statistics.outside == 0);
    partition.last_moved_in = source;
    --partition.outside;
    --sources_[source].statistics.outside;
    partition.queue.push({now, now, source, Handling::delayed, false});
  }

  // --- jobs --------------------------------------------------------------------------------------

  void note_ready(PartitionIndex index) {
    ready_ = partitions_[index].jobs.any_ready() ? ready_ | bit(index) : ready_ & ~bit(index);
  }

  /// The partition whose job was made ready first; only if there is one.
  [[nodiscard]] PartitionIndex first_ready() const {
    auto first = static_cast<PartitionIndex>(std::countr_zero(ready_));
    for (BitSet rest = ready_ & (ready_ - 1); rest != 0; rest &= rest - 1) {
      const auto other = static_cast<PartitionIndex>(std::countr_zero(rest));
      first = partitions_[other].jobs.oldest() < partitions_[first].jobs.oldest() ? other : first;
    }
    return first;
  }

  Next start_job() {
    running_ = first_ready();
    const std::uint16_t source = partitions_[running_].jobs.start();
    note_ready(running_);
    job_ = {.active = true,
            .in_handler = false,
            .partition = running_,
            .source = source,
            .budget = sources_[source].bottom};
    ++sources_[source].statistics.jobs;
    Next next = run_job();
    next.job_started = true;
    return next;
  }

  [[nodiscard]] bool job_is_over() const {
    return job_.budget <= Duration() || partitions_[job_.partition].queue.empty();
  }

  [[nodiscard]] Next run_job() const {
    Next next;
    next.partition = job_.partition;
    next.interposed = true;
    next.job_source = job_.source;
    next.budget = job_.budget;
    return next;
  }

  Next end_job() {
    Next next;
    next.job_ended = true;
    next.overrun = job_.in_handler && !partitions_[job_.partition].queue.empty();
    next.job_source = job_.source;
    sources_[job_.source].statistics.overruns += next.overrun ? 1 : 0;
    job_.active = false;
    running_ = nobody;
    return next;
  }

  SlotCycle cycle_;
  Mode mode_ = Mode::plain;
  PartitionIndex running_ = 0;  ///< executes guest code, if any
  Job job_;
  BitSet ready_ = 0;   ///< partitions that have a job to start
  BitSet masked_ = 0;  ///< sources that have exceeded their limits
  BitSet own_partitions_ = 0;
  std::uint64_t orders_ = 0;  ///< jobs made ready, those of a slot's end counting as one
  std::uint64_t pending_ = 0;
  Source* sources_ = nullptr;
  Partition* partitions_ = nullptr;
  std::span<const PlannedSource> planned_;
};

using Dispatcher = BasicDispatcher<1024>;

}  // namespace latenz::hypervisor
