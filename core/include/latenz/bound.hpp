// SPDX-License-Identifier: Apache-2.0
// Worst-case interrupt latency under TDMA with top, bottom and interposed handlers: a sound bound,
// with what it is made of. docs/bound.md has the argument; docs/beckert2014.md says where the
// published equations fall short (printed_equations.hpp has those).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "latenz/system.hpp"
#include "latenz/time.hpp"

namespace latenz {

enum class Verdict : std::uint8_t {
  bounded,
  unbounded,     ///< for a reason that no longer search can change
  past_horizon,  ///< no end of the busy window was found within the horizon
};

enum class Reason : std::uint8_t {
  none,
  overload,            ///< the work of the long run exceeds what the partition gets
  unlimited_arrivals,  ///< a source that costs the partition time may come at any rate
  horizon,             ///< the busy window is longer than the horizon
  too_many_steps,      ///< it may end within the horizon, but takes too long to find
  unlimited_deferral,  ///< interposed jobs of another source can gather without a known limit
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

struct SystemBound {
  std::vector<QueueBound> queues;  ///< by partition
  Promise promise;
};

/// Bounds every queue of a system in one mode.
class BoundAnalysis {
 public:
  /// @param horizon busy windows beyond it count as past the horizon
  BoundAnalysis(const System& system, Mode mode, Duration horizon)
      : system_(system), mode_(mode), horizon_(horizon) {
    for (std::uint32_t partition = 0; partition < system.partitions(); ++partition) {
      supplies_.emplace_back(system.table(), partition);
    }
  }

  [[nodiscard]] SystemBound run() {
    const std::size_t sources = system_.sources().size();
    SystemBound result;
    jitter_.assign(sources, Duration());
    for (int round = 0;; ++round) {
      result.queues.clear();
      for (std::uint32_t partition = 0; partition < system_.partitions(); ++partition) {
        result.queues.push_back(queue(partition));
      }
      if (mode_ != Mode::carry || !raise_jitter(result.queues, round < most_rounds)) {
        break;
      }
    }
    result.promise = promise();
    return result;
  }

 private:
  /// Which work keeps a queue waiting: foreign slots, or (every IRQ accepted, mode carry) only the
  /// server of top handlers, switches and interposed jobs.
  enum class Form : std::uint8_t { slots, server };

  static constexpr std::int64_t most_steps = 1 << 22;
  static constexpr int most_rounds = 1000;

  [[nodiscard]] std::span<const Source> sources() const { return system_.sources(); }

  /// The most interposed jobs of a source in a window of a queue. In the slots form they all come
  /// from IRQs that arrive in the window: one that arrived before and has no job yet waits in its
  /// own partition's slot, which counts as blocked, so the window begins before it. The server form
  /// does not count that time; there jobs of other partitions may come from as long before as their
  /// release can be deferred. Nothing of the queue itself is pending when either window begins.
  [[nodiscard]] Count grants(std::size_t index, std::uint32_t partition, Duration window,
                             Form form) const {
    const Source& source = sources()[index];
    const bool deferred = form == Form::server && source.partition != partition;
    const Duration reach = deferred ? window + jitter_[index] : window;
    return source.monitor ? std::min(source.arrival.eta(reach), source.monitor->eta(reach)) : 0;
  }

  /// What an interposed job of this source costs a queue in a form: other partitions' whole jobs,
  /// of the own only what interposing adds (in the server form it is counted with the bottom).
  [[nodiscard]] Duration interposed_cost(const Source& source, std::uint32_t partition,
                                         Form form) const {
    if (!System::interposed(source, mode_)) {
      return {};
    }
    if (source.partition != partition) {
      return source.bottom + system_.costs().interposing();
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

  /// Top handlers and interposed jobs that arrive in a window.
  [[nodiscard]] Duration interference(std::uint32_t partition, Duration window, Form form) const {
    Duration work;
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Source& source = sources()[i];
      work += system_.top_cost(source, mode_) * source.arrival.eta(window);
      if (const Duration cost = interposed_cost(source, partition, form); cost > Duration()) {
        work += cost * grants(i, partition, window, form);
      }
    }
    return work;
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

  [[nodiscard]] QueueBound queue(std::uint32_t partition) {
    QueueBound slots = queue(partition, Form::slots);
    if (!all_accepted(partition)) {
      return slots;
    }
    const QueueBound server = queue(partition, Form::server);
    const bool better = server.verdict == Verdict::bounded &&
                        (slots.verdict != Verdict::bounded || server.latency <= slots.latency);
    return better ? server : slots;
  }

  /// Mode carry: whether every IRQ of the partition keeps its source's monitor.
  [[nodiscard]] bool all_accepted(std::uint32_t partition) const {
    return mode_ == Mode::carry && std::ranges::all_of(sources(), [&](const Source& source) {
             return source.partition != partition ||
                    (source.monitor && source.arrival.conforms_to(*source.monitor));
           });
  }

  [[nodiscard]] QueueBound queue(std::uint32_t partition, Form form) {
    QueueBound bound;
    bound.interposed = form == Form::server;
    if (!possible(partition, form, bound)) {
      return bound;
    }
    steps_ = 0;
    bound.busy_window = settle(partition, Duration(1), form,
                               [&](Duration window) { return own_work(partition, window, form); });
    if (bound.busy_window.is_unbounded()) {
      return past_horizon(bound);
    }
    Duration finish;
    for (Duration offset; offset < bound.busy_window; offset = next_step(partition, offset)) {
      const Duration own = own_work(partition, offset + Duration(1), form);
      finish = settle(partition, finish, form, [&](Duration /*window*/) { return own; });
      if (finish.is_unbounded() || steps_ >= most_steps) {
        return past_horizon(bound);
      }
      if (finish - offset > bound.latency) {
        bound.latency = finish - offset;
        bound.offset = offset;
      }
    }
    explain(partition, form, bound);
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
    const Reason reason = steps_ < most_steps ? Reason::horizon : Reason::too_many_steps;
    give_up(bound, Verdict::past_horizon, reason, 0);
    return bound;
  }

  /// The next time after `offset` at which some source of the partition may have one more IRQ.
  [[nodiscard]] Duration next_step(std::uint32_t partition, Duration offset) {
    ++steps_;
    Duration next = Duration::unbounded();
    for (const Source& source : sources()) {
      if (source.partition == partition) {
        next = std::min(next, source.arrival.delta(source.arrival.eta(offset + Duration(1)) + 1));
      }
    }
    return next;
  }

  /// Finds what no horizon can help: unlimited arrivals, and more work in the long run than supply.
  [[nodiscard]] bool possible(std::uint32_t partition, Form form, QueueBound& bound) const {
    Share total = 0;
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Source& source = sources()[i];
      Duration each = system_.top_cost(source, mode_);
      if (source.partition == partition) {
        each += bottom_cost(source, form);
      }
      if (each > Duration() && source.arrival.rate_window() == Duration()) {
        return give_up(bound, Verdict::unbounded, Reason::unlimited_arrivals, i);
      }
      total += share(each, source.arrival.rate_events(), source.arrival.rate_window());
      const Duration cost = interposed_cost(source, partition, form);
      if (cost > Duration() && source.monitor) {
        if (form == Form::server && jitter_[i].is_unbounded()) {
          return give_up(bound, Verdict::past_horizon, Reason::unlimited_deferral, i);
        }
        total +=
            std::min(share(cost, source.arrival.rate_events(), source.arrival.rate_window()),
                     share(cost, source.monitor->rate_events(), source.monitor->rate_window()));
      }
    }
    if (total > capacity(partition, form)) {
      return give_up(bound, Verdict::unbounded, Reason::overload, 0);
    }
    return true;
  }

  __extension__ using Share = __int128;  ///< of the processor, in 1 / whole

  static constexpr std::int64_t whole = 1'000'000'000'000;

  /// Rounded down, so that what is called an overload surely is one.
  [[nodiscard]] static Share share(Duration each, Count events, Duration window) {
    if (each == Duration()) {
      return 0;
    }
    if (window == Duration()) {
      return std::numeric_limits<std::int64_t>::max();
    }
    // each < 2^63 and events <= 64, so only `whole` needs care: 2^63 * 64 * 10^12 < 2^109.
    return Share{each.ns()} * events * whole / window.ns();
  }

  [[nodiscard]] Share capacity(std::uint32_t partition, Form form) const {
    const Duration cycle = system_.table().cycle();
    Duration available = supplies_[partition].per_cycle();
    if (form == Form::server) {
      available = cycle - (system_.table().slot_switch() *
                           static_cast<Count>(system_.table().slots().size()));
    }
    return (Share{available.ns()} * whole / cycle.ns()) + 1;
  }

  void explain(std::uint32_t partition, Form form, QueueBound& bound) const {
    const Duration finish = bound.offset + bound.latency;
    const Duration arrivals = bound.offset + Duration(1);
    Duration work;
    for (std::size_t i = 0; i < sources().size(); ++i) {
      const Source& source = sources()[i];
      SourceShare share;
      share.top_handlers = source.arrival.eta(finish);
      share.top = system_.top_cost(source, mode_) * share.top_handlers;
      if (source.partition == partition) {
        share.bottom_handlers = source.arrival.eta(arrivals);
        share.bottom = bottom_cost(source, form) * share.bottom_handlers;
      }
      if (const Duration cost = interposed_cost(source, partition, form); cost > Duration()) {
        share.interposed = grants(i, partition, finish, form);
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
      const Source& source = sources()[i];
      if (!source.monitor) {
        continue;
      }
      const Duration jitter =
          std::min(queues[source.partition].latency, longest_deferral(source.partition, server));
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
    const auto nobody = static_cast<std::uint32_t>(system_.partitions());
    return settle(nobody, Duration(1), Form::server,
                  [](Duration /*window*/) { return Duration(); });
  }

  /// From an IRQ's arrival to the release of its interposed job, whatever its queue holds: it
  /// waits at most for the end of its own slots in a row, and before them for a job that was
  /// dropped at their start, for which the server was busy all the time. Only if the server can be
  /// busy from one own slot to the next may a job be dropped twice; then this says nothing.
  [[nodiscard]] Duration longest_deferral(std::uint32_t partition, Duration server) const {
    const auto slots = system_.table().slots();
    Duration longest_row;
    Duration shortest_gap = Duration::unbounded();
    for (std::size_t first = 0; first < slots.size(); ++first) {
      const Slot& before = slots[(first + slots.size() - 1) % slots.size()];
      if ((slots[first].partition == partition) == (before.partition == partition)) {
        continue;
      }
      Duration row;
      for (std::size_t i = first; (slots[i % slots.size()].partition == partition) ==
                                  (slots[first].partition == partition);
           ++i) {
        row += slots[i % slots.size()].length;
      }
      if (slots[first].partition == partition) {
        longest_row = std::max(longest_row, row);
      } else {
        shortest_gap = std::min(shortest_gap, row);
      }
    }
    return server < shortest_gap ? longest_row + server : Duration::unbounded();
  }

  [[nodiscard]] Promise promise() const {
    const auto nobody = static_cast<std::uint32_t>(system_.partitions());
    const auto loss = [&](Duration window) {
      return time_for(nobody, interference(nobody, window, Form::server), window, Form::server);
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
  std::vector<Supply> supplies_;  ///< by partition
  std::vector<Duration> jitter_;  ///< by source: of its interposed jobs, so far
  std::int64_t steps_ = 0;        ///< of the queue being analysed
};

/// Bounds every queue of a system.
///
/// @param horizon a busy window longer than this counts as past the horizon
[[nodiscard]] inline SystemBound bound(const System& system, Mode mode,
                                       Duration horizon = Duration(1'000'000'000)) {
  return BoundAnalysis(system, mode, horizon).run();
}

}  // namespace latenz
