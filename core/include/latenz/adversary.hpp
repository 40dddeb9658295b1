// SPDX-License-Identifier: Apache-2.0
// Looks for arrivals that take an interrupt as close to its bound as possible, by simulation. What
// it finds is reachable: every source keeps its event model, or, in a hostile search, those of the
// target's partition do. Used on a host.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "latenz/arrivals.hpp"
#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"
#include "latenz/system.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// Some events of a source, as close together as its model allows, none before a time.
struct Burst {
  Instant from;
  Count events = endless;
};

/// What a source does: its bursts in order. The earliest stream that is legal for its event model:
/// an event comes when its burst begins, or as soon as the events before it permit.
using Plan = std::vector<Burst>;

/// The least distances delta-minus(1), (2), ... of a model as a table, up to a length of time.
class DistanceTable {
 public:
  /// @param most entries at most
  DistanceTable(const EventModel& model, Duration reach, std::size_t most) {
    for (Count q = 1; table_.size() < most; ++q) {
      table_.push_back(model.delta(q));
      if (table_.back() > reach) {
        break;
      }
    }
  }

  /// The least time from an event to the one `after` events later.
  [[nodiscard]] Duration operator[](std::size_t after) const { return table_[after]; }
  [[nodiscard]] std::size_t size() const { return table_.size(); }

 private:
  std::vector<Duration> table_;
};

/// The events of a plan up to a time, as many as the table has entries.
///
/// An event waits for the first events of its own burst and of those before only. That is enough:
/// delta-minus is super-additive, so an event `k` places after another one that waited for the same
/// first event is at least delta-minus(k + 1) after it.
inline void expand(const Plan& plan, const DistanceTable& distances, Instant until,
                   std::vector<std::int64_t>& times) {
  struct First {
    std::size_t index;
    Instant at;
  };
  std::vector<First> firsts;
  times.clear();
  for (const Burst& burst : plan) {
    for (Count i = 0; i < burst.events && times.size() < distances.size(); ++i) {
      Instant at = burst.from;
      for (const First& first : firsts) {
        at = std::max(at, first.at + distances[times.size() - first.index]);
      }
      if (at > until) {
        return;
      }
      if (i == 0) {
        firsts.push_back({times.size(), at});
      }
      times.push_back(at.ns());
    }
  }
}

/// What every source does, from the first cycle on, and the latency of the IRQ that fares worst.
struct Attack {
  Duration latency;
  std::vector<std::vector<std::int64_t>> arrivals;  ///< by source; empty if nothing was found
  std::vector<Instant> monitored_from;              ///< by source: its monitor has learned by then
};

/// Which sources a search lets break their event models.
enum class Hostile : std::uint8_t {
  none,
  other_partitions,  ///< those of partitions other than the target's, as far as R7 lets them; and
                     ///< monitors that learn are switched on whenever that is worst
};

/// Searches one system in one mode. The same calls with the same seed find the same.
///
/// It starts from the critical instants of the analysis: the ends of a partition's slots, all
/// sources at their densest, the queue's own IRQs just before the one at the attaining offset. Then
/// it changes the phases of one source after the other and keeps what is worse for the target, with
/// times at which the rules change their mind: slot edges, other arrivals, completions, each one
/// nanosecond early or late.
class Adversary {
 public:
  /// @param bounds of this system in this mode, enforced ones for a hostile search; both must
  ///        outlive this object
  /// @param between called before each simulation and during long ones; an exception ends what is
  ///        under way, and what was found stays
  Adversary(
      const System& system, Mode mode, const std::vector<QueueBound>& bounds, std::uint64_t seed,
      std::function<void()> between = [] {}, Hostile hostile = Hostile::none)
      : system_(system),
        mode_(mode),
        bounds_(bounds),
        random_(seed),
        between_(std::move(between)),
        hostile_(hostile),
        times_(system.sources().size()),
        attacks_(system.sources().size()) {
    for (const QueueBound& queue : bounds) {
      if (queue.verdict == Verdict::bounded) {
        longest_bound_ = std::max(longest_bound_, queue.latency);
      }
    }
  }

  /// Searches for one source with at most this many simulations, in vain if it has no bound.
  void search(std::size_t target, int simulations) {
    begin(target, simulations);
    while (!go_on(simulations)) {
    }
  }

  /// Begins such a search with the critical instants; none if its times might not fit in 64 bits.
  /// Ended by an exception before its first simulation, it has nothing to go on with.
  void begin(std::size_t target, int simulations) {
    const QueueBound& bound = bounds_[system_.sources()[target].partition];
    best_ = {};
    left_ = bound.verdict == Verdict::bounded ? std::max(simulations, 0) : 0;
    if (left_ == 0) {
      return;
    }
    target_ = target;
    finish_ = bound.offset + bound.latency;
    // Early enough for what the first cycles may leave behind.
    origin_ = Instant() + (system_.table().cycle() *
                           (covering_parts(bound.busy_window, system_.table().cycle()) + 2));
    const Duration longest = (origin_ - Instant()) + finish_ + (system_.table().cycle() * 2);
    if (longest + longest_bound_ > Duration(INT64_MAX / 2)) {
      left_ = 0;
      return;
    }
    tables_.clear();
    for (const Source& source : system_.sources()) {
      tables_.emplace_back(moves_of(source), finish_ + (system_.table().cycle() * 2),
                           most_arrivals);
    }
    for (const Gap& gap : gaps()) {
      start_from(gap, bound.offset);
    }
  }

  /// Goes on for at most this many simulations; true: the search has come to its end, because it
  /// has used all of them or reached the bound, or never began.
  bool go_on(int simulations) {
    if (left_ <= 0 || best_.pattern.plans.empty()) {
      return true;
    }
    const Duration bound = bounds_[partition()].latency;
    for (; simulations > 0 && left_ > 0 && best_.latency < bound; --simulations) {
      attempt(changed());
    }
    return left_ == 0 || best_.latency >= bound;
  }

  /// Simulations that the search has not used yet.
  [[nodiscard]] int left() const { return left_; }

  /// Leaves out arrivals that a source's worst latency does not need, with at most this many
  /// simulations: what is left explains it.
  void simplify(std::size_t source, int simulations) {
    Attack& attack = attacks_[source];
    std::size_t most = 0;
    for (const auto& each : attack.arrivals) {
      most = std::max(most, each.size());
    }
    for (std::size_t size = std::bit_floor(most); size > 0; size /= 2) {
      for (std::size_t i = 0; i < attack.arrivals.size(); ++i) {
        thin_out(source, i, size, simulations);
      }
    }
    attack = from_first_cycle(std::move(attack));
    share(source);
  }

  /// The worst found for each source, whichever source of those that count was the target.
  [[nodiscard]] std::span<const Attack> attacks() const { return attacks_; }

 private:
  static constexpr std::size_t most_arrivals = 4096;  ///< of one source in one simulation
  static constexpr std::size_t most_gaps = 8;
  static constexpr std::size_t most_edges = 64;
  static constexpr std::int64_t steps = 4096;  ///< of a simulation, between two looks at its time

  /// A time in which a partition has no slot.
  struct Gap {
    Instant from;
    Instant to;
  };

  struct Pattern {
    Instant until;
    std::vector<Plan> plans;
    std::vector<Instant> monitored_from;  ///< by source
  };

  /// The best pattern so far, and what its simulation showed.
  struct Best {
    Duration latency;
    Pattern pattern;
    IrqRecord worst{};
    std::vector<IrqRecord> records;
    std::vector<std::vector<std::int64_t>> times;
  };

  /// Keeps all records.
  struct Recorder {
    static constexpr bool segments = false;
    std::vector<IrqRecord> records;

    void irq(const IrqRecord& record) { records.push_back(record); }
    static void segment(Activity /*activity*/, std::uint32_t /*partition*/,
                        std::uint32_t /*source*/, Instant /*start*/, Instant /*end*/) {}
    static bool full() { return false; }
  };

  [[nodiscard]] std::span<const Source> sources() const { return system_.sources(); }
  [[nodiscard]] std::uint32_t partition() const { return sources()[target_].partition; }
  [[nodiscard]] bool chance(int percent) { return random_.up_to(99) < percent; }
  [[nodiscard]] std::size_t pick(std::size_t size) {
    return static_cast<std::size_t>(random_.up_to(static_cast<std::int64_t>(size) - 1));
  }

  /// How densely a search lets a source come: a hostile one as its monitor grants, so that none is
  /// wasted; without a monitor twice as densely as it may, for the limit to stop.
  [[nodiscard]] EventModel moves_of(const Source& source) const {
    if (hostile_ == Hostile::none || source.partition == partition()) {
      return source.arrival;
    }
    if (source.monitor) {
      return *source.monitor;
    }
    const Duration window(source.arrival.rate_window().ns() / (2 * source.arrival.rate_events()));
    return Periodic(std::max(Duration(1), window), Duration(), Duration());
  }

  // --- where to start ----------------------------------------------------------------------------

  /// The gaps of the target's partition that begin in the cycle at the origin. A partition without
  /// gaps has empty ones at its slot switches.
  [[nodiscard]] std::vector<Gap> gaps() const {
    const auto slots = system_.table().slots();
    std::vector<Gap> result;
    Instant from = origin_;
    for (std::size_t i = 0; i < slots.size() && result.size() < most_gaps; ++i) {
      from += slots[i].length;
      if (slots[i].partition != partition()) {
        continue;
      }
      Instant to = from;
      for (std::size_t next = i + 1; slots[next % slots.size()].partition != partition(); ++next) {
        to += slots[next % slots.size()].length;
      }
      result.push_back({from, to});
    }
    return result;
  }

  /// All sources at their densest from the gap's start on; the target's IRQ that fares worst comes
  /// at the attaining offset, in the first or the last place among those that may come until then.
  void start_from(const Gap& gap, Duration offset) {
    edges_ = edges(gap);
    Duration tops;
    for (const Source& source : sources()) {
      tops += system_.top_cost(source, mode_);
    }
    const Source& target = sources()[target_];
    const auto before = static_cast<std::size_t>(target.arrival.eta(offset + Duration(1)) - 1);
    const Duration behind = tables_[target_][std::min(before, tables_[target_].size() - 1)];
    for (const Duration early : {Duration(), Duration(1), tops, tops + target.bottom}) {
      for (const Instant others : {gap.from - early, gap.to - early}) {
        Pattern pattern{.until = gap.from + finish_,
                        .plans = {},
                        .monitored_from = {sources().size(), Instant::long_ago()}};
        for (std::size_t i = 0; i < sources().size(); ++i) {
          const bool mate = sources()[i].partition == partition();
          const Instant own = gap.from - early - Duration(i > target_ ? 1 : 0);
          pattern.plans.push_back({Burst{.from = mate ? own : others}});
        }
        pattern.plans[target_] = {Burst{.from = gap.from - early + offset - behind}};
        attempt(pattern);
      }
    }
    for (std::size_t i = 0; i < sources().size(); ++i) {
      descend((target_ + 1 + i) % sources().size(), gap, offset);
    }
  }

  /// Tries the instants that matter for one source while the others keep theirs.
  void descend(std::size_t index, const Gap& gap, Duration offset) {
    std::vector<Instant> instants = {gap.from - Duration(1), gap.from,
                                     gap.from + offset,      best_.worst.arrival - Duration(1),
                                     best_.worst.arrival,    best_.worst.end - Duration(1)};
    for (const Instant start : own_starts(gap)) {
      instants.push_back(start - Duration(1));
      instants.push_back(start);
    }
    const auto last =
        static_cast<std::size_t>(sources()[index].arrival.eta(offset + Duration(1)) - 1);
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}, last}) {
      if (place >= tables_[index].size() || (place == last && last < 2)) {
        continue;
      }
      for (const Instant instant : instants) {
        Pattern pattern = best_.pattern;
        pattern.plans[index] = {Burst{.from = instant - tables_[index][place]}};
        attempt(pattern);
      }
    }
  }

  /// Starts of the partition's slots after a gap, until the bound has passed.
  [[nodiscard]] std::vector<Instant> own_starts(const Gap& gap) const {
    std::vector<Instant> result;
    for (const Edge& edge : edges_) {
      if (edge.partition == partition() && edge.at >= gap.to && edge.at < gap.from + finish_) {
        result.push_back(edge.at);
      }
    }
    if (result.size() > most_gaps) {
      result.erase(result.begin() + 1, result.end() - most_gaps + 1);
    }
    return result;
  }

  struct Edge {
    Instant at;
    std::uint32_t partition;
  };

  /// Slot starts from one cycle before the gap on.
  [[nodiscard]] std::vector<Edge> edges(const Gap& gap) const {
    const auto slots = system_.table().slots();
    std::vector<Edge> result;
    Instant at = origin_ - system_.table().cycle();
    for (std::size_t i = 0; at <= gap.from + finish_ && result.size() < most_edges; ++i) {
      result.push_back({at, slots[i % slots.size()].partition});
      at += slots[i % slots.size()].length;
    }
    return result;
  }

  // --- how to go on ------------------------------------------------------------------------------

  /// The best pattern with one change.
  [[nodiscard]] Pattern changed() {
    Pattern pattern = best_.pattern;
    const std::size_t index = pick(pattern.plans.size());
    if (hostile_ != Hostile::none && sources()[index].learns && chance(25)) {
      pattern.monitored_from[index] = chance(20) ? Instant::long_ago() : interesting();
      return pattern;
    }
    Plan& plan = pattern.plans[index];
    const std::int64_t kind = random_.up_to(9);
    if (kind < 4) {
      plan = {Burst{.from = interesting() - places_before(index)}};
    } else if (kind < 6) {
      plan.insert(plan.begin(), {.from = interesting(), .events = 1 + random_.up_to(1)});
      std::ranges::sort(plan, {}, &Burst::from);
    } else if (kind < 7 && plan.size() > 1) {
      plan.erase(plan.begin() + static_cast<std::ptrdiff_t>(pick(plan.size() - 1)));
    } else if (kind < 9) {
      plan[pick(plan.size())].from += nudge();
    } else {
      const Duration shift = interesting() - plan.back().from;
      for (Plan& each : pattern.plans) {
        for (Burst& burst : each) {
          burst.from += shift;
        }
      }
    }
    plan.back().events = endless;
    return pattern;
  }

  /// How long before some event of a burst it begins.
  [[nodiscard]] Duration places_before(std::size_t index) {
    const std::size_t most = std::min<std::size_t>(tables_[index].size(), 8);
    return chance(50) ? Duration() : tables_[index][pick(most)];
  }

  /// A slot edge, an arrival, a start or an end, or a nanosecond beside it.
  [[nodiscard]] Instant interesting() {
    Instant at;
    if (best_.records.empty() || chance(40)) {
      at = edges_[pick(edges_.size())].at;
    } else {
      const IrqRecord& record =
          chance(30) ? best_.worst : best_.records[pick(best_.records.size())];
      const Instant instants[] = {record.arrival, record.top_start, record.end};
      at = instants[pick(std::size(instants))];
    }
    return at + Duration(random_.up_to(2) - 1);
  }

  /// A cost of the system, or a nanosecond, early or late.
  [[nodiscard]] Duration nudge() {
    const Source& source = sources()[pick(sources().size())];
    const Costs& costs = system_.costs();
    const Duration lengths[] = {Duration(1),         source.top,
                                source.bottom,       costs.monitor,
                                costs.interposing(), system_.top_cost(source, mode_),
                                costs.slot_switch,   source.bottom + costs.interposing()};
    const Duration length = lengths[pick(std::size(lengths))];
    return chance(50) ? length : Duration() - length;
  }

  // --- simulation --------------------------------------------------------------------------------

  using Times = std::vector<std::vector<std::int64_t>>;  ///< by source

  /// Simulates a pattern; keeps it if it is no better for the target than the worst so far.
  void attempt(const Pattern& pattern) {
    if (left_ <= 0) {
      return;
    }
    --left_;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      Plan plan = pattern.plans[i];
      for (Burst& burst : plan) {
        burst.from = std::max(burst.from, Instant());
      }
      expand(plan, tables_[i], pattern.until, times_[i]);
    }
    const std::vector<SourceFigures> figures = simulate(times_, pattern.monitored_from);
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (figures[i].max > attacks_[i].latency && is_fair_to(i, target_)) {
        attacks_[i] = from_first_cycle({figures[i].max, times_, pattern.monitored_from});
      }
    }
    if (figures[target_].max >= best_.latency) {
      best_.latency = figures[target_].max;
      best_.pattern = pattern;
      best_.records = recorder_.records;
      const auto latency = [this](const IrqRecord& record) {
        return record.source == target_ ? record.end - record.arrival : Duration();
      };
      if (!best_.records.empty()) {
        best_.worst = *std::ranges::max_element(best_.records, {}, latency);
      }
    }
  }

  /// Whether what was simulated for a target may be held against the bound of a source: its own
  /// partition kept its models.
  [[nodiscard]] bool is_fair_to(std::size_t source, std::size_t target) const {
    return hostile_ == Hostile::none || sources()[source].partition == sources()[target].partition;
  }

  /// Simulates until every IRQ that has a bound must have ended. Another may never end.
  [[nodiscard]] std::vector<SourceFigures> simulate(const Times& times,
                                                    const std::vector<Instant>& monitored_from) {
    between_();
    Instant last;
    std::vector<Arrivals> arrivals;
    for (const auto& each : times) {
      last = each.empty() ? last : std::max(last, Instant(each.back()));
      arrivals.emplace_back(ListedArrivals(each));
    }
    recorder_.records.clear();
    Simulator<Recorder> simulator(system_, mode_, std::move(arrivals), endless, false, recorder_);
    if (hostile_ != Hostile::none) {
      simulator.limit_arrivals();
      for (std::size_t i = 0; i < times.size(); ++i) {
        simulator.monitor_from(i, monitored_from[i]);
      }
    }
    const Instant enough = std::min(last + longest_bound_, Instant::never() - Duration(1));
    while (!simulator.run(steps) && simulator.now() <= enough) {
      between_();
    }
    return {simulator.figures().begin(), simulator.figures().end()};
  }

  /// The same earlier by whole cycles: nothing happens before the first.
  [[nodiscard]] Attack from_first_cycle(Attack attack) const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const auto& each : attack.arrivals) {
      first = each.empty() ? first : std::min(first, each.front());
    }
    const std::int64_t cycle = system_.table().cycle().ns();
    const std::int64_t before = first / cycle * cycle;
    for (auto& each : attack.arrivals) {
      for (std::int64_t& at : each) {
        at -= before;
      }
    }
    for (Instant& from : attack.monitored_from) {
      from = std::max(from, Instant(before)) - Duration(before);
    }
    return attack;
  }

  /// Leaves out `size` arrivals of a source wherever that does not lower the latency.
  void thin_out(std::size_t target, std::size_t source, std::size_t size, int& simulations) {
    Attack& attack = attacks_[target];
    for (std::size_t at = 0; at < attack.arrivals[source].size() && simulations > 0;) {
      Times fewer = attack.arrivals;
      auto& times = fewer[source];
      const auto from = times.begin() + static_cast<std::ptrdiff_t>(at);
      times.erase(from, from + static_cast<std::ptrdiff_t>(std::min(size, times.size() - at)));
      --simulations;
      const Duration latency = simulate(fewer, attack.monitored_from)[target].max;
      if (latency >= attack.latency) {
        attack = {latency, std::move(fewer), attack.monitored_from};
      } else {
        at += size;
      }
    }
  }

  /// Others may fare worse by what is left than by all that was found for them.
  void share(std::size_t target) {
    const Attack shared = attacks_[target];
    if (shared.arrivals.empty()) {
      return;
    }
    const std::vector<SourceFigures> figures = simulate(shared.arrivals, shared.monitored_from);
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (figures[i].max > attacks_[i].latency && is_fair_to(i, target)) {
        attacks_[i] = {figures[i].max, shared.arrivals, shared.monitored_from};
      }
    }
  }

  const System& system_;
  Mode mode_;
  const std::vector<QueueBound>& bounds_;
  Random random_;
  std::function<void()> between_;
  Hostile hostile_;
  Duration longest_bound_;

  std::size_t target_ = 0;
  int left_ = 0;     ///< simulations
  Duration finish_;  ///< of the IRQ that fares worst, from the start of the busy window
  Instant origin_;   ///< a start of a cycle
  std::vector<DistanceTable> tables_;
  std::vector<Edge> edges_;
  Best best_;

  std::vector<std::vector<std::int64_t>> times_;  ///< by source: of the simulation under way
  Recorder recorder_;
  std::vector<Attack> attacks_;
};

}  // namespace latenz
