// SPDX-License-Identifier: Apache-2.0
// Simulates interrupts under TDMA by the execution rules R1 to R7 of docs/rules.md, to the
// nanosecond. Memory does not grow with the number of IRQs. Used on a host.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "latenz/arrivals.hpp"
#include "latenz/cost_curve.hpp"
#include "latenz/handling.hpp"
#include "latenz/limiter.hpp"
#include "latenz/monitor.hpp"
#include "latenz/system.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// One IRQ, from arrival to the end of its bottom handler.
struct IrqRecord {
  std::uint32_t source;
  Handling handling;
  Instant arrival;
  Instant top_start;
  Instant end;
};

/// What the processor does for a while.
enum class Activity : std::uint8_t {
  slot_switch,
  top_handler,
  bottom_handler,      ///< in a slot of its own partition
  interposing,         ///< the scheduler and the context switches around an interposed job
  interposed_handler,  ///< a bottom handler that an interposed job executes
};

/// Watches a simulation and costs nothing. An observer has these members; `segments` says whether
/// it wants to see what the processor does, `full()` pauses the simulation.
struct NoObserver {
  static constexpr bool segments = false;
  static void irq(const IrqRecord& /*record*/) {}
  static void segment(Activity /*activity*/, std::uint32_t /*partition*/, std::uint32_t /*source*/,
                      Instant /*start*/, Instant /*end*/) {}
  static bool full() { return false; }
};

/// Figures of one source's IRQs that have ended.
struct SourceFigures {
  __extension__ using Wide = __int128;
  std::int64_t n = 0;
  Duration min = Duration::unbounded();
  Duration max;
  Wide sum = 0;
  std::int64_t by_handling[3] = {};

  void add(Duration latency, Handling handling) {
    ++n;
    min = std::min(min, latency);
    max = std::max(max, latency);
    sum += latency.ns();
    ++by_handling[static_cast<std::size_t>(handling)];
  }
};

/// First in, first out; grows when full.
template <typename Item>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return first_ == end_; }
  [[nodiscard]] Item& front() { return items_[first_ & mask_]; }
  void pop() { ++first_; }
  /// Position of the front among all that were ever pushed.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] Item& operator[](std::uint64_t position) { return items_[position & mask_]; }

  void push(const Item& item) {
    if (end_ - first_ > mask_) {
      grow();
    }
    items_[end_++ & mask_] = item;
  }

 private:
  void grow() {
    const std::uint64_t mask = (2 * mask_) + 1;
    std::vector<Item> larger(mask + 1);
    for (std::uint64_t i = first_; i != end_; ++i) {
      larger[i & mask] = items_[i & mask_];
    }
    items_ = std::move(larger);
    mask_ = mask;
  }

  std::uint64_t mask_ = 15;  ///< capacity - 1, the capacity being a power of two
  std::vector<Item> items_ = std::vector<Item>(16);
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

/// The state of a system; `run` takes it forward.
template <typename Observer = NoObserver>
class Simulator {
 public:
  /// @param arrivals one for each source
  /// @param most_irqs arrivals after this many are left out
  /// @param from_top latency counts from the top handler's start instead of the arrival
  Simulator(const System& system, Mode mode, std::vector<Arrivals> arrivals, std::int64_t most_irqs,
            bool from_top, Observer& observer)
      : system_(system),
        slots_(system.table().slots()),
        slot_switch_(system.table().slot_switch()),
        mode_(mode),
        from_top_(from_top),
        observer_(observer),
        arrivals_(std::move(arrivals)),
        irqs_left_(most_irqs),
        figures_(system.sources().size()),
        partitions_(system.partitions()) {
    for (const Source& source : system.sources()) {
      sources_.push_back({.partition = source.partition,
                          .monitored = System::interposed(source, mode),
                          .top = source.top,
                          .bottom = source.bottom,
                          .monitor = source.monitor ? Monitor(source.monitor->closed()) : Monitor(),
                          .limiter = {},
                          .costs = {}});
      if (source.top_sums) {
        sources_.back().costs.emplace(source.top_sums->closed());
      }
    }
    find_next_arrival();
  }

  /// The monitor of a source is switched on at a time: whatever arrives earlier is handled as if
  /// there were none. So a learning phase precedes the monitored one (beckert2014, appendix A).
  void monitor_from(std::size_t source, Instant at) { sources_[source].monitored_from = at; }

  /// Carries out R7: a source that exceeds its event model is masked. Otherwise all are taken to
  /// keep their models, which costs nothing to check.
  void limit_arrivals() {
    limited_ = true;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      sources_[i].limiter = system_.sources()[i].arrival.limiter();
    }
  }

  /// The system must outlive the simulator.
  Simulator(const System&&, Mode, std::vector<Arrivals>, std::int64_t, bool, Observer&) = delete;

  /// Goes on until everything is done (true), the observer is full, or `most_steps` arrivals and
  /// slot switches have been served (false: call again).
  bool run(std::int64_t most_steps) {
    for (; most_steps > 0 && !observer_.full(); --most_steps) {
      const Instant next = std::min(next_switch_, next_arrival_);
      if (now_ < next) {
        serve_until(next);
        if (next_arrival_ == Instant::never() && idle()) {
          return true;
        }
      }
      if (next_switch_ <= next_arrival_) {  // R6: at equal times the switch comes first
        switch_slot();
      } else {
        top_handler();
      }
    }
    return false;
  }

  /// Takes the longest latency that each source is allowed. Debug builds stop at an IRQ above it,
  /// as they do where a queue is not served in order or a budget is exceeded.
  void expect(std::vector<Duration> limits) { limits_ = std::move(limits); }

  [[nodiscard]] std::span<const SourceFigures> figures() const { return figures_; }
  [[nodiscard]] Instant now() const { return now_; }

 private:
  using Monitor = DistanceMonitor<longest_distance_vector>;

  struct SourceState {
    std::uint32_t partition;
    bool monitored;
    Instant monitored_from = Instant::long_ago();
    Duration top;
    Duration bottom;
    Monitor monitor;
    Limiter<longest_distance_vector> limiter;
    Instant masked_until = Instant::long_ago();
    std::optional<CostMeter> costs;  ///< of its top handlers; none: each takes `top`
  };

  struct Pending {
    Instant arrival;
    Instant top_start;
    Duration left;
    std::uint32_t source;
    Handling handling;
  };

  struct Job {
    std::uint32_t partition;
    std::uint32_t source;
    std::uint64_t period;  ///< of the partition, between two of its slots: dropped with it
    std::uint64_t irq;     ///< position in the partition's queue
  };

  struct PartitionState {
    Fifo<Pending> queue;
    Fifo<std::uint64_t> accepted;  ///< mode carry: IRQs whose budget is unused
    std::uint64_t period = 0;
    Instant served;  ///< top handler of the last IRQ that ended
  };

  enum class Phase : std::uint8_t { none, entering, executing, leaving };

  [[nodiscard]] bool idle() const {
    return pending_ == 0 && phase_ == Phase::none && jobs_.empty();
  }

  // --- R1: top handlers and slot switches, in the order of their times -------------------------

  // Inlined by force: a tenth of the time of an IRQ.
  [[gnu::always_inline]] void switch_slot() {
    skip_idle_slots();
    const std::uint32_t before = owner_;
    const Instant start = std::max(now_, next_switch_);
    enter_next_slot();
    now_ = start + slot_switch_;
    report(Activity::slot_switch, owner_, 0, start);
    if (owner_ != before && before != nobody) {
      if (mode_ == Mode::carry) {
        release_accepted(before);
      }
      ++partitions_[owner_].period;  // R5: drops its jobs that have not started
    }
  }

  void enter_next_slot() {
    slot_ = slot_ + 1 < slots_.size() ? slot_ + 1 : 0;
    owner_ = slots_[slot_].partition;
    next_switch_ += slots_[slot_].length;
  }

  /// While nothing is pending, slots change nothing but the owner: goes to the last switch before
  /// the next arrival.
  void skip_idle_slots() {
    if constexpr (!Observer::segments) {
      if (!idle() || now_ > next_switch_ || next_arrival_ == Instant::never()) {
        return;
      }
      const Duration cycle = system_.table().cycle();
      if (const Duration gap = next_arrival_ - next_switch_; gap >= cycle) {
        next_switch_ += cycle * whole_parts(gap, cycle);
      }
      while (next_switch_ + slots_[slot_ + 1 < slots_.size() ? slot_ + 1 : 0].length <=
             next_arrival_) {
        enter_next_slot();
      }
    }
  }

  [[gnu::always_inline]] void top_handler() {
    const std::uint32_t index = next_source_;
    SourceState& source = sources_[index];
    const Instant arrival = next_arrival_;
    const Instant start = std::max(now_, arrival);
    if (limited_) {
      if (!source.limiter.permits(arrival)) {
        mask(index, start);
        return;
      }
      source.limiter.record(arrival);
    }
    const bool foreign = owner_ != source.partition;
    now_ = start + (source.costs ? source.costs->next() : source.top);
    bool accepted = false;
    if (source.monitored && arrival >= source.monitored_from && (foreign || mode_ == Mode::carry)) {
      now_ += system_.costs().monitor;
      accepted = source.monitor.accept(arrival);
    }
    report(Activity::top_handler, source.partition, index, start);
    Handling handling = Handling::direct;
    if (foreign) {
      handling = accepted ? Handling::interposed : Handling::delayed;
    }
    const Instant raised = arrivals_[index].at();
    enqueue(index, {raised, start, source.bottom, index, handling}, accepted, foreign);
    arrivals_[index].advance();
    find_next_arrival();
  }

  /// R7: what exceeds its source's limit waits for the first slot start at which it does not.
  void mask(std::uint32_t index, Instant start) {
    SourceState& source = sources_[index];
    now_ = start + system_.costs().limit;
    report(Activity::top_handler, source.partition, index, start);
    source.masked_until = system_.table().start_from(source.limiter.earliest());
    ++irqs_left_;  // it is looked for once more
    find_next_arrival();
  }

  void enqueue(std::uint32_t index, const Pending& irq, bool accepted, bool foreign) {
    PartitionState& partition = partitions_[sources_[index].partition];
    const std::uint64_t position = partition.queue.end();
    partition.queue.push(irq);
    ++pending_;
    if (accepted && mode_ == Mode::carry) {
      partition.accepted.push(position);
    }
    if (accepted && foreign) {
      jobs_.push({sources_[index].partition, index, partition.period, position});
    }
  }

  /// Mode carry: accepted IRQs that are still pending when their own slot ends are interposed.
  void release_accepted(std::uint32_t partition) {
    PartitionState& state = partitions_[partition];
    for (std::uint64_t i = state.accepted.first(); i != state.accepted.end(); ++i) {
      const std::uint64_t irq = state.accepted[i];
      jobs_.push({partition, state.queue[irq].source, state.period, irq});
    }
  }

  void find_next_arrival() {
    next_arrival_ = Instant::never();
    if (irqs_left_-- <= 0) {
      irqs_left_ = 0;
      return;
    }
    std::uint32_t index = 0;
    for (const Arrivals& arrivals : arrivals_) {
      const Instant at =
          limited_ ? std::max(arrivals.at(), sources_[index].masked_until) : arrivals.at();
      if (at < next_arrival_) {
        next_arrival_ = at;
        next_source_ = index;
      }
      ++index;
    }
  }

  // --- R2 and R3: what runs in between ----------------------------------------------------------

  void serve_until(Instant until) {
    while (now_ < until) {
      if (phase_ != Phase::none || start_job()) {
        continue_job(until);
      } else if (owner_ != nobody && !partitions_[owner_].queue.empty()) {
        serve(owner_, until - now_, Activity::bottom_handler);
      } else {
        return;
      }
    }
  }

  /// R2: the oldest job that has not been dropped.
  bool start_job() {
    while (!jobs_.empty()) {
      const Job next = jobs_.front();
      jobs_.pop();
      PartitionState& partition = partitions_[next.partition];
      if (next.period != partition.period) {
        continue;
      }
      if (!partition.accepted.empty() && partition.accepted.front() == next.irq) {
        partition.accepted.pop();
      }
      job_ = next;
      phase_ = Phase::entering;
      left_ = system_.costs().schedule + system_.costs().context_switch;
      settle_job();
      return true;
    }
    return false;
  }

  void continue_job(Instant until) {
    if (phase_ == Phase::none) {
      return;
    }
    const Instant start = now_;
    if (phase_ == Phase::executing) {
      const Duration most = std::min(left_, until - now_);
      left_ -= serve(job_.partition, most, Activity::interposed_handler);
      assert(left_ >= Duration() && "no job executes longer than its budget");
    } else {
      const Duration step = std::min(left_, until - now_);
      now_ += step;
      left_ -= step;
      report(Activity::interposing, job_.partition, job_.source, start);
    }
    settle_job();
  }

  /// Ends phases that have nothing left, at the very instant (R6: completion comes first).
  void settle_job() {
    if (phase_ == Phase::entering && left_ == Duration()) {
      phase_ = Phase::executing;
      left_ = sources_[job_.source].bottom;
    }
    if (phase_ == Phase::executing &&
        (left_ == Duration() || partitions_[job_.partition].queue.empty())) {
      phase_ = Phase::leaving;
      left_ = system_.costs().context_switch;
    }
    if (phase_ == Phase::leaving && left_ == Duration()) {
      phase_ = Phase::none;
    }
  }

  /// R4: executes the first bottom handler of a queue for at most this long; returns how long.
  Duration serve(std::uint32_t index, Duration most, Activity activity) {
    PartitionState& partition = partitions_[index];
    Pending& irq = partition.queue.front();
    const Instant start = now_;
    const Duration step = std::min(irq.left, most);
    now_ += step;
    irq.left -= step;
    report(activity, index, irq.source, start);
    if (irq.left == Duration()) {
      complete(partition);
    }
    return step;
  }

  void complete(PartitionState& partition) {
    const Pending& irq = partition.queue.front();
    assert(irq.arrival <= irq.top_start && irq.top_start <= now_);
    assert(partition.served <= irq.top_start && "queues are served in the order of top handlers");
    assert((limits_.empty() || now_ - irq.arrival <= limits_[irq.source]) && "IRQ above its bound");
    partition.served = irq.top_start;
    if (!partition.accepted.empty() && partition.accepted.front() == partition.queue.first()) {
      partition.accepted.pop();
    }
    figures_[irq.source].add(now_ - (from_top_ ? irq.top_start : irq.arrival), irq.handling);
    observer_.irq({irq.source, irq.handling, irq.arrival, irq.top_start, now_});
    partition.queue.pop();
    --pending_;
  }

  void report(Activity activity, std::uint32_t partition, std::uint32_t source, Instant start) {
    if constexpr (Observer::segments) {
      if (now_ > start) {
        observer_.segment(activity, partition, source, start, now_);
      }
    }
  }

  static constexpr std::uint32_t nobody = UINT32_MAX;

  const System& system_;
  std::span<const Slot> slots_;
  Duration slot_switch_;
  Mode mode_;
  bool from_top_;
  bool limited_ = false;  ///< by R7
  Observer& observer_;
  std::vector<Arrivals> arrivals_;
  std::int64_t irqs_left_;
  std::vector<SourceFigures> figures_;
  std::vector<Duration> limits_;
  std::vector<PartitionState> partitions_;
  std::vector<SourceState> sources_;

  Instant now_;
  Instant next_switch_;
  Instant next_arrival_;
  std::uint32_t next_source_ = 0;
  std::size_t slot_ = SIZE_MAX;  ///< before the first switch: the next one is slot 0
  std::uint32_t owner_ = nobody;

  std::int64_t pending_ = 0;
  Fifo<Job> jobs_;
  Job job_{};  ///< the one that runs
  Phase phase_ = Phase::none;
  Duration left_;  ///< of the phase; while executing, of the budget
};

}  // namespace latenz
