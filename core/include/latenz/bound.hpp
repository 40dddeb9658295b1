// SPDX-License-Identifier: Apache-2.0
// Worst-case interrupt latency under TDMA with top, bottom and interposed handlers: a sound bound,
// with what it is made of. docs/bound.md has the argument; docs/beckert2014.md says where the
// published equations fall short (printed_equations.hpp has those).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "latenz/long_run.hpp"
#include "latenz/system.hpp"
#include "latenz/time.hpp"

namespace latenz {

enum class Verdict : std::uint8_t {
  bounded,
  unbounded,     ///< proven: arrivals that the models allow make the queue grow without end
  past_horizon,  ///< no form of the analysis found a bound, which shows nothing
};

enum class Reason : std::uint8_t {
  none,
  overload,            ///< in the long run more bottom handlers come than can be executed
  unlimited_arrivals,  ///< a source that costs the partition time may come at any rate
  horizon,             ///< the busy window is longer than the horizon
  too_many_steps,      ///< it may end within the horizon, but takes too long to find
  unlimited_deferral,  ///< interposed jobs of another source can gather without a known limit
  overcounted,         ///< the form counts more work in the long run than it has served
};

/// What one source adds to the latency.
struct SourceShare {
  Count top_handlers = 0;
  Duration top;  ///< all of these top handlers, with the monitor's cost where it runs
  Count bottom_handlers = 0;
  Duration bottom;  ///< bottom handlers of the analysed partition's queue
  Count interposed = 0;
  Duration interposing;  ///< interposed jobs of other partitions; of the own: what switching costs
};

/// The bound of one partition's queue, and where it is attained. All sources of a partition share
/// its queue, hence its bound. The parts add up: sum of all shares + blocked + switches =
/// offset + latency.
struct QueueBound {
  Verdict verdict = Verdict::bounded;
  Reason reason = Reason::none;
  std::size_t culprit = 0;  ///< the source with unlimited arrivals or deferral
  bool interposed = false;  ///< by the form in which every IRQ of the queue is accepted
  Duration latency;
  Duration busy_window;  ///< longest time from idle to idle
  Duration offset;       ///< from the busy window's start to the arrival that fares worst
  Duration blocked;      ///< foreign slots, and switches into own ones
  Duration switches;     ///< slot switches, where `blocked` does not count
  std::vector<SourceShare> shares;
};

/// What each partition loses to others: the whole server of top handlers, slot switches and
/// interposed jobs, which is work-conserving, so no window loses more than may arrive in it.
struct Promise {
  Duration per_cycle;              ///< in any window of one cycle
  std::vector<Duration> per_slot;  ///< in the slots of the cycle, each no more than its length
};

/// Every bound twice: `queues` and `promise` hold if all sources keep their event models, the
/// enforced ones whatever sources of other partitions do, a promise whatever any source does.
struct SystemBound {
  std::vector<QueueBound> queues;  ///< by partition
  Promise promise;
  std::vector<QueueBound> enforced;  ///< by partition; shares are not told
  Promise enforced_promise;
};

/// Bounds every queue of a system in one mode.
class BoundAnalysis {
 public:
  /// @param horizon busy windows beyond it count as past the horizon
  BoundAnalysis(const System& system, Mode mode, Duration horizon)
      : system_(system), mode_(mode), horizon_(horizon), jitter_(system.sources().size()) {
    supplies_.reserve(system.partitions());
    for (std::uint32_t partition = 0; partition < system.partitions(); ++partition) {
      supplies_.emplace_back(system.table(), partition);
      if (mode == Mode::carry) {
        rows_.push_back(rows_of(partition));
      }
    }
    costs_.reserve(sources().size());
    for (const Source& source : sources()) {
      costs_.push_back(cost_of(source));
    }
  }

  [[nodiscard]] SystemBound run() {
    SystemBound result;
    bound_as_modelled(result);
    bound_as_enforced(result);
    return result;
  }

 private:
  /// Which work keeps a queue waiting: foreign slots, or (every IRQ accepted, mode carry) only the
  /// server of top handlers, switches and interposed jobs.
  enum class Form : std::uint8_t { slots, server };

  /// Which sources are taken to keep their event models.
  enum class Trusted : std::uint8_t { everyone, own_partition };

  /// What the IRQs of a source cost other partitions.
  struct Cost {
    Duration top;             ///< of each top handler, besides what a cost curve says
    Duration job;             ///< 0: never interposed
    Share tops_share = 0;     ///< of all top handlers in the long run, as often as may be
    Share jobs_share = 0;     ///< likewise of its jobs
    Share granted_share = 0;  ///< of its jobs if it breaks its model
    bool conforms = false;    ///< its model keeps the monitor's distances
    bool outnumbers = false;  ///< its model lets no fewer IRQs come than the monitor, in any window
  };

  /// A bound of a queue in one of the forms that the one looked for is not less than.
  struct Known {
    bool interposed = false;
    Duration busy_window = Duration(1);
    Duration offset;
    Duration finish;  ///< of the IRQ that arrives then
  };

  /// The slots of a partition in a row, and the times between them.
  struct Rows {
    Duration longest_row;
    Duration shortest_gap = Duration::unbounded();
  };

  static constexpr std::int64_t most_steps = 1 << 22;
  static constexpr int most_rounds = 1000;

  [[nodiscard]] std::span<const Source> sources() const { return system_.sources(); }

  /// No partition: the whole server is of others.
  [[nodiscard]] std::uint32_t nobody() const {
    return static_cast<std::uint32_t>(system_.partitions());
  }

  [[nodiscard]] Cost cost_of(const Source& source) {
    Cost cost{.top = system_.top_cost(source, mode_), .job = Duration()};
    cost.tops_share = share_of_tops(source, system_.asking_cost(source, mode_));
    if (source.top_sums) {
      cost.top = system_.asking_cost(source, mode_);
      curves_ = true;
    }
    if (source.monitor && System::interposed(source, mode_)) {
      cost.job = source.bottom + system_.costs().interposing();
      cost.granted_share = share(cost.job, *source.monitor);
      cost.conforms = source.arrival.conforms_to(*source.monitor);
      cost.outnumbers = source.arrival.outnumbers(*source.monitor);
      cost.jobs_share = std::min(cost.granted_share, share(cost.job, source.arrival));
    }
    return cost;
  }

  void bound_as_modelled(SystemBound& result) {
    trusted_ = Trusted::everyone;
    for (int round = 0;; ++round) {
      result.queues.clear();
      for (std::uint32_t partition = 0; partition < system_.partitions(); ++partition) {
        result.queues.push_back(queue(partition));
      }
      if (mode_ != Mode::carry || !raise_jitter(result.queues, round < most_rounds)) {
        break;
      }
    }
    result.enforced = result.queues;
    for (std::uint32_t partition = 0; partition < system_.partitions(); ++partition) {
      explain(partition, result.queues[partition]);
    }
    result.promise = promise();
  }

  /// Where no other partition can do more than was modelled, the bounds are those found already.
  void bound_as_enforced(SystemBound& result) {
    trusted_ = Trusted::own_partition;
    const bool jobs =
        std::ranges::any_of(costs_, [](const Cost& each) { return each.job.ns() > 0; });
    if (mode_ == Mode::carry && jobs) {
      defer_as_enforced();
    }
    for (std::uint32_t partition = 0; partition < system_.partitions(); ++partition) {
      if (depends_on_others(partition)) {
        QueueBound& enforced = result.enforced[partition];
        known_ = {.interposed = enforced.interposed,
                  .busy_window = enforced.busy_window,
                  .offset = enforced.offset,
                  .finish = enforced.offset + enforced.latency};
        enforced = queue(partition);
      }
    }
    known_ = {};
    result.enforced_promise = jobs || masking() ? promise() : result.promise;
  }

  [[nodiscard]] bool masking() const { return system_.costs().limit > Duration(); }

  /// Whether sources of other partitions can cost this one more than their models say.
  [[nodiscard]] bool depends_on_others(std::uint32_t partition) const {
    const bool deferral = all_accepted(partition);
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const bool jobs = costs_[i].job > Duration() && (deferral || !costs_[i].outnumbers);
      if (sources()[i].partition != partition && (jobs || masking())) {
        return true;
      }
    }
    return false;
  }

  /// The most interposed jobs of a source in a window of a queue. In the slots form they all come
  /// from IRQs that arrive in the window: one that arrived before and has no job yet waits in its
  /// own partition's slot, which counts as blocked, so the window begins before it. The server form
  /// does not count that time; there jobs of other partitions may come from as long before as their
  /// release can be deferred. Nothing of the queue itself is pending when either window begins.
  ///
  /// @param arrivals the most IRQs of the source in the window
  [[nodiscard]] Count grants(std::size_t index, std::uint32_t partition, Duration window,
                             Count arrivals, Form form) const {
    const Source& source = sources()[index];
    if (!source.monitor) {
      return 0;  // never interposed
    }
    const bool own = source.partition == partition;
    const bool deferred = form == Form::server && !own;
    const Duration reach = deferred ? window + jitter_[index] : window;
    if (!own && trusted_ != Trusted::everyone) {
      return source.monitor->eta(reach);
    }
    const Count modelled = deferred ? source.arrival.eta(reach) : arrivals;
    return costs_[index].conforms ? modelled : std::min(modelled, source.monitor->eta(reach));
  }

  /// What an interposed job of a source costs a queue in a form: other partitions' whole jobs, of
  /// the own only what interposing adds (in the server form it is counted with the bottom).
  [[nodiscard]] Duration interposed_cost(std::size_t index, std::uint32_t partition,
                                         Form form) const {
    if (costs_[index].job == Duration() || sources()[index].partition != partition) {
      return costs_[index].job;
    }
    return form == Form::slots ? system_.costs().interposing() : Duration();
  }

  [[nodiscard]] Duration bottom_cost(const Source& source, Form form) const {
    return form == Form::slots ? source.bottom : source.bottom + system_.costs().interposing();
  }

  /// Work of the queue itself that arrives in a window.
  [[nodiscard]] Duration own_work(std::uint32_t partition, Duration window, Form form) const {
    Duration work;
    for (const Source& source : sources()) {
      if (source.partition == partition) {
        work += bottom_cost(source, form) * source.arrival.eta(window);
      }
    }
    return work;
  }

  /// What top handlers that arrive in a window take by cost curves. Most systems have none.
  [[nodiscard, gnu::noinline]] Duration by_curves(Duration window) const {
    Duration work;
    for (const Source& source : sources()) {
      if (source.top_sums) {
        work += source.top_sums->sum(source.arrival.eta(window));
      }
    }
    return work;
  }

  /// The longest that so many consecutive top handlers of a source take.
  [[nodiscard]] Duration top_handlers(std::size_t index, Count count) const {
    const Duration each = costs_[index].top * count;
    const std::optional<CostCurve>& curve = sources()[index].top_sums;
    return curve ? each + curve->sum(count) : each;
  }

  /// Top handlers and interposed jobs that arrive in a window.
  [[nodiscard]] Duration interference(std::uint32_t partition, Duration window, Form form) const {
    Duration work;
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Count tops = sources()[i].arrival.eta(window);
      work += costs_[i].top * tops;
      if (const Duration cost = interposed_cost(i, partition, form); cost > Duration()) {
        work += cost * grants(i, partition, window, tops, form);
      }
      if (trusted_ != Trusted::everyone && masking() && sources()[i].partition != partition) {
        work += system_.costs().limit * masks(tops, window);
      }
    }
    return curves_ ? work + by_curves(window) : work;
  }

  /// The most times a source is masked in a window (R7): between two of them it is unmasked at a
  /// slot's start and has a top handler.
  [[nodiscard]] Count masks(Count tops, Duration window) const {
    return next_count(std::min(tops, system_.table().switches(window)));
  }

  /// The time in which a form surely does this work.
  [[nodiscard]] Duration time_for(std::uint32_t partition, Duration work, Duration window,
                                  Form form) const {
    if (form == Form::slots) {
      return supplies_[partition].time_to_supply(work);
    }
    return work + (system_.table().slot_switch() * system_.table().switches(window));
  }

  /// The least window >= start that is long enough for the work that `own` says and for what
  /// interferes in it; unbounded if past the horizon or after too many steps.
  template <typename Own>
  [[nodiscard]] Duration settle(std::uint32_t partition, Duration start, Form form, Own own) {
    Duration window = start;
    for (; steps_ < most_steps; ++steps_) {
      const Duration work = own(window) + interference(partition, window, form);
      const Duration needed = time_for(partition, work, window, form);
      if (needed <= window) {
        return window;
      }
      if (needed > horizon_) {
        return Duration::unbounded();
      }
      window = needed;
    }
    return Duration::unbounded();
  }

  /// The lesser bound of the forms that hold; without any, what is known instead.
  [[nodiscard]] QueueBound queue(std::uint32_t partition) {
    if (std::ranges::find(sources(), partition, &Source::partition) == sources().end()) {
      return {};  // no IRQ is ever late
    }
    QueueBound slots = queue(partition, Form::slots);
    if (all_accepted(partition)) {
      QueueBound server = queue(partition, Form::server);
      if (server.verdict == Verdict::bounded ? server.latency <= slots.latency
                                             : slots.reason == Reason::overcounted) {
        slots = std::move(server);
      }
    }
    const Duration own_slots = supplies_[partition].per_cycle();
    if (slots.verdict == Verdict::past_horizon &&
        grows_without_end(system_, mode_, partition, own_slots)) {
      give_up(slots, Verdict::unbounded, Reason::overload, 0);
    }
    return slots;
  }

  /// Mode carry: whether every IRQ of the partition keeps its source's monitor, from the first on.
  [[nodiscard]] bool all_accepted(std::uint32_t partition) const {
    if (mode_ != Mode::carry) {
      return false;
    }
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Source& source = sources()[i];
      if (source.partition == partition && (source.learns || !costs_[i].conforms)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] QueueBound queue(std::uint32_t partition, Form form) {
    QueueBound bound;
    bound.interposed = form == Form::server;
    if (!possible(partition, form, bound)) {
      return bound;
    }
    steps_ = 0;
    const bool known = known_.interposed == bound.interposed && !known_.busy_window.is_unbounded();
    bound.busy_window = settle(partition, known ? known_.busy_window : Duration(1), form,
                               [&](Duration window) { return own_work(partition, window, form); });
    if (bound.busy_window.is_unbounded()) {
      return past_horizon(bound);
    }
    Duration finish;
    Duration own;
    Duration next;
    for (Duration offset; offset < bound.busy_window; offset = next) {
      next = next_step(partition, offset);
      const Duration before = own;
      own = own_work(partition, offset + Duration(1), form);
      if (next < bound.busy_window) {
        finish += own - before;  // it is later at least by the work that has come
        if (known && offset >= known_.offset) {
          finish = std::max(finish, known_.finish);
        }
        finish = settle(partition, finish, form, [&](Duration /*window*/) { return own; });
      } else {
        finish = bound.busy_window;  // the last IRQ of a busy window ends with it
      }
      if (finish.is_unbounded() || steps_ >= most_steps) {
        return past_horizon(bound);
      }
      if (finish - offset > bound.latency) {
        bound.latency = finish - offset;
        bound.offset = offset;
      }
    }
    return bound;
  }

  static bool give_up(QueueBound& bound, Verdict verdict, Reason reason, std::size_t culprit) {
    bound.verdict = verdict;
    bound.reason = reason;
    bound.culprit = culprit;
    bound.busy_window = Duration::unbounded();
    bound.latency = Duration::unbounded();
    return false;
  }

  [[nodiscard]] QueueBound& past_horizon(QueueBound& bound) const {
    give_up(bound, Verdict::past_horizon, why_no_end(), 0);
    return bound;
  }

  /// Why no end of a busy window was found.
  [[nodiscard]] Reason why_no_end() const {
    return steps_ < most_steps ? Reason::horizon : Reason::too_many_steps;
  }

  /// The next time after `offset` at which some source of the partition may have one more IRQ.
  [[nodiscard]] Duration next_step(std::uint32_t partition, Duration offset) {
    ++steps_;
    Duration next = Duration::unbounded();
    for (const Source& source : sources()) {
      if (source.partition == partition) {
        const Count until = source.arrival.eta(offset + Duration(1));
        next = std::min(next, source.arrival.delta(next_count(until)));
      }
    }
    return next;
  }

  /// Finds what no horizon can help a form: unlimited arrivals, and more work in the long run than
  /// it has served. Shares are rounded so that only a real excess counts.
  [[nodiscard]] bool possible(std::uint32_t partition, Form form, QueueBound& bound) const {
    Share total = 0;
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Source& source = sources()[i];
      const bool own = source.partition == partition;
      const bool costly = own || source.top > Duration() || costs_[i].top > Duration();
      if (costly && source.arrival.rate_window() == Duration()) {
        return give_up(bound, Verdict::unbounded, Reason::unlimited_arrivals, i);
      }
      if (!own && costs_[i].job > Duration() && form == Form::server && jitter_[i].is_unbounded()) {
        return give_up(bound, Verdict::past_horizon, why_unlimited_, i);
      }
      total += own ? share_of_own(source, form) : share_of_other(costs_[i]);
    }
    return total <= capacity(partition, form) ||
           give_up(bound, Verdict::past_horizon, Reason::overcounted, 0);
  }

  [[nodiscard]] Share share_of_other(const Cost& cost) const {
    const bool modelled = trusted_ == Trusted::everyone;
    return cost.tops_share + (modelled ? cost.jobs_share : cost.granted_share);
  }

  /// All that a source costs its own partition in a form.
  [[nodiscard]] Share share_of_own(const Source& source, Form form) const {
    const Duration added = system_.asking_cost(source, mode_) + bottom_cost(source, form);
    const Share handlers = share_of_tops(source, added);
    if (form == Form::server || !source.monitor || !System::interposed(source, mode_)) {
      return handlers;
    }
    const Duration switching = system_.costs().interposing();
    return handlers + std::min(share(switching, *source.monitor), share(switching, source.arrival));
  }

  [[nodiscard]] Share capacity(std::uint32_t partition, Form form) const {
    const Duration cycle = system_.table().cycle();
    Duration available = supplies_[partition].per_cycle();
    if (form == Form::server) {
      available = cycle - (system_.table().slot_switch() *
                           static_cast<Count>(system_.table().slots().size()));
    }
    return share(available, 1, cycle) + 1;
  }

  /// Says what a bound is made of.
  void explain(std::uint32_t partition, QueueBound& bound) const {
    if (bound.verdict != Verdict::bounded) {
      return;
    }
    const Form form = bound.interposed ? Form::server : Form::slots;
    const Duration finish = bound.offset + bound.latency;
    const Duration arrivals = bound.offset + Duration(1);
    Duration work;
    bound.shares.reserve(sources().size());
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Source& source = sources()[i];
      SourceShare share;
      share.top_handlers = source.arrival.eta(finish);
      share.top = top_handlers(i, share.top_handlers);
      if (source.partition == partition) {
        share.bottom_handlers = source.arrival.eta(arrivals);
        share.bottom = bottom_cost(source, form) * share.bottom_handlers;
      }
      if (const Duration cost = interposed_cost(i, partition, form); cost > Duration()) {
        share.interposed = grants(i, partition, finish, share.top_handlers, form);
        share.interposing = cost * share.interposed;
      }
      work += share.top + share.bottom + share.interposing;
      bound.shares.push_back(share);
    }
    (form == Form::slots ? bound.blocked : bound.switches) = finish - work;
  }

  /// Mode carry: an accepted IRQ may be interposed long after it arrived, so jobs can lie closer
  /// than the monitor lets arrivals be. Returns whether any source's jitter grew; what grows for
  /// too long is given up.
  [[nodiscard]] bool raise_jitter(const std::vector<QueueBound>& queues, bool patient) {
    bool grew = false;
    const Duration server = server_busy_window();
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const std::uint32_t partition = sources()[i].partition;
      if (costs_[i].job == Duration()) {
        continue;
      }
      const Duration jitter =
          std::min(queues[partition].latency, longest_deferral(partition, server));
      if (jitter > jitter_[i]) {
        grew = true;
        jitter_[i] = patient ? jitter : Duration::unbounded();
      }
    }
    return grew;
  }

  /// The longest time that top handlers, slot switches and interposed jobs keep the processor.
  [[nodiscard]] Duration server_busy_window() {
    steps_ = 0;
    const Duration busy =
        settle(nobody(), Duration(1), Form::server, [](Duration /*window*/) { return Duration(); });
    why_unlimited_ = busy.is_unbounded() ? why_no_end() : Reason::unlimited_deferral;
    return busy;
  }

  /// Mode carry, with nobody's latency known: jobs are deferred by their row and the server alone.
  /// How long the server is busy and how far jobs are deferred are found in one climb: what is long
  /// enough for the jobs that it defers itself.
  void defer_as_enforced() {
    steps_ = 0;
    for (Duration busy(1); steps_ < most_steps; ++steps_) {
      defer_by(busy);
      const Duration work = interference(nobody(), busy, Form::server);
      const Duration needed = time_for(nobody(), work, busy, Form::server);
      if (needed <= busy) {
        return;
      }
      if (needed > horizon_) {
        why_unlimited_ = needed.is_unbounded() ? Reason::unlimited_deferral : Reason::horizon;
        break;
      }
      why_unlimited_ = Reason::too_many_steps;
      busy = needed;
    }
    defer_by(Duration::unbounded());
  }

  void defer_by(Duration server) {
    for (std::size_t i = 0; i < sources().size(); ++i) {
      jitter_[i] = longest_deferral(sources()[i].partition, server);
    }
  }

  /// From an IRQ's arrival to the release of its interposed job, whatever its queue holds: it
  /// waits at most for the end of its own slots in a row, and before them for a job that was
  /// dropped at their start, for which the server was busy all the time. Only if the server can be
  /// busy from one own slot to the next may a job be dropped twice; then this says nothing.
  [[nodiscard]] Duration longest_deferral(std::uint32_t partition, Duration server) const {
    const Rows& rows = rows_[partition];
    return server < rows.shortest_gap ? rows.longest_row + server : Duration::unbounded();
  }

  [[nodiscard]] Rows rows_of(std::uint32_t partition) const {
    const auto slots = system_.table().slots();
    Rows rows;
    for (std::size_t first = 0; first < slots.size(); ++first) {
      const Slot& before = slots[(first + slots.size() - 1) % slots.size()];
      const bool own = slots[first].partition == partition;
      if (own == (before.partition == partition)) {
        continue;
      }
      Duration row;
      for (std::size_t i = first; (slots[i % slots.size()].partition == partition) == own; ++i) {
        row += slots[i % slots.size()].length;
      }
      if (own) {
        rows.longest_row = std::max(rows.longest_row, row);
      } else {
        rows.shortest_gap = std::min(rows.shortest_gap, row);
      }
    }
    return rows;
  }

  [[nodiscard]] Promise promise() const {
    const auto loss = [&](Duration window) {
      const Duration work = interference(nobody(), window, Form::server);
      return time_for(nobody(), work, window, Form::server);
    };
    Promise promise{.per_cycle = loss(system_.table().cycle()), .per_slot = {}};
    for (const Slot& slot : system_.table().slots()) {
      promise.per_slot.push_back(std::min(slot.length, loss(slot.length)));
    }
    return promise;
  }

  const System& system_;
  Mode mode_;
  Duration horizon_;
  Trusted trusted_ = Trusted::everyone;
  std::vector<Supply> supplies_;  ///< by partition
  std::vector<Rows> rows_;        ///< by partition, in mode carry
  std::vector<Cost> costs_;       ///< by source
  bool curves_ = false;           ///< whether any source has a cost curve
  std::vector<Duration> jitter_;  ///< by source: of its interposed jobs, so far
  Known known_;
  std::int64_t steps_ = 0;                             ///< of the queue being analysed
  Reason why_unlimited_ = Reason::unlimited_deferral;  ///< where jitter is unbounded
};

/// Bounds every queue of a system.
///
/// @param horizon a busy window longer than this counts as past the horizon
[[nodiscard]] inline SystemBound bound(const System& system, Mode mode,
                                       Duration horizon = Duration(1'000'000'000)) {
  return BoundAnalysis(system, mode, horizon).run();
}

}  // namespace latenz
