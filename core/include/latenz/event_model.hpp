// SPDX-License-Identifier: Apache-2.0
// How densely interrupts may arrive. Used by the analysis on a host; the tables live on the heap.
//
// Windows are half open: eta(dt) is the most events in any [t, t + dt), delta(q) the least time
// between the first and the last of q consecutive events. Laws, tested: eta(0) = 0; delta(0) =
// delta(1) = 0; both are monotone; delta(q) < dt exactly if eta(dt) >= q (duality); delta is
// super-additive: delta(a + b - 1) >= delta(a) + delta(b).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <variant>

#include "latenz/additive_closure.hpp"
#include "latenz/distances.hpp"
#include "latenz/limiter.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// A number of events; `endless` where nothing bounds it, or where it does not fit: counts end
/// there as times do.
using Count = std::int64_t;
inline constexpr Count endless = INT64_MAX;

/// One more than a number of events.
[[nodiscard]] constexpr Count next_count(Count count) { return detail::saturating_add(count, 1); }

/// Events every `period`, each up to `jitter` late, never closer than `min_distance`.
class Periodic {
 public:
  /// @pre period > 0, jitter >= 0, 0 <= min_distance <= period
  constexpr Periodic(Duration period, Duration jitter, Duration min_distance)
      : period_(period), jitter_(jitter), min_distance_(min_distance) {}

  [[nodiscard]] constexpr Duration delta(Count q) const {
    return q < 2 ? Duration()
                 : std::max({Duration(), period_ * (q - 1) - jitter_, min_distance_ * (q - 1)});
  }

  [[nodiscard]] constexpr Count eta(Duration window) const {
    if (window <= Duration()) {
      return 0;
    }
    if (window.is_unbounded()) {
      return endless;
    }
    const Duration reach = window + jitter_;
    const Count by_period = reach.is_unbounded() ? endless : covering_parts(reach, period_);
    return min_distance_.ns() > 0 ? std::min(by_period, covering_parts(window, min_distance_))
                                  : by_period;
  }

  /// In the long run `rate_events()` events come in every `rate_window()`.
  [[nodiscard]] static constexpr Count rate_events() { return 1; }
  [[nodiscard]] constexpr Duration rate_window() const { return period_; }

  /// Permits the streams of this model and no others.
  [[nodiscard]] Limiter<longest_distance_vector> limiter() const {
    return {{&min_distance_, 1}, period_, jitter_};
  }

 private:
  Duration period_;
  Duration jitter_;
  Duration min_distance_;
};

/// Events at least as far apart as a vector of minimum distances says, and as it implies for more
/// events: the super-additive closure, q events being a row of q - 1 gaps.
class DistanceVector {
 public:
  /// @pre 1 .. 64 distances >= 0, not decreasing
  explicit DistanceVector(std::span<const Duration> distances) : gaps_(distances) {}

  [[nodiscard]] Duration delta(Count q) const { return q < 2 ? Duration() : gaps_(q - 1); }

  [[nodiscard]] Count eta(Duration window) const {
    if (window <= Duration()) {
      return 0;
    }
    if (window.is_unbounded() || rate_window() == Duration()) {
      return endless;
    }
    const std::span<const Duration> table = gaps_.table();
    if (table.size() == 1) {
      return covering_parts(window, rate_window());
    }
    const Count times = covering_parts(window - table.back(), rate_window());
    const Duration rest = window - (rate_window() * times);
    const auto within = std::ranges::lower_bound(table, rest) - table.begin();
    const Count known = within + Count{1};
    return detail::saturating_add(known, detail::saturating_multiply(times, rate_events()));
  }

  [[nodiscard]] Count rate_events() const { return static_cast<Count>(gaps_.row()); }
  [[nodiscard]] Duration rate_window() const { return gaps_.best(); }

  /// Permits the streams of this model and no others.
  [[nodiscard]] Limiter<longest_distance_vector> limiter() const { return {closed(), {}, {}}; }

  /// The closed vector, as long as the one given.
  [[nodiscard]] std::span<const Duration> closed() const { return gaps_.closed(); }

 private:
  AdditiveClosure<std::greater<>> gaps_;  ///< delta(2), delta(3), ...
};

/// Any number of events at any time: an interrupt source about which nothing is known.
class Unlimited {
 public:
  [[nodiscard]] static Duration delta(Count /*q*/) { return {}; }
  [[nodiscard]] static Count eta(Duration window) { return window > Duration() ? endless : 0; }
  [[nodiscard]] static Count rate_events() { return 1; }
  [[nodiscard]] static Duration rate_window() { return {}; }
  [[nodiscard]] static Limiter<longest_distance_vector> limiter() { return {}; }
};

/// One of the models above.
class EventModel {
 public:
  template <typename Model>
  EventModel(Model model) : model_(std::move(model)) {}  // NOLINT(misc-explicit-constructor)

  [[nodiscard]] Duration delta(Count q) const {
    return std::visit([q](const auto& model) { return model.delta(q); }, model_);
  }
  [[nodiscard]] Count eta(Duration window) const {
    if (const auto* periodic = std::get_if<Periodic>(&model_)) {
      return periodic->eta(window);  // most are, and it takes a fraction of a visit
    }
    return std::visit([window](const auto& model) { return model.eta(window); }, model_);
  }
  [[nodiscard]] Count rate_events() const {
    return std::visit([](const auto& model) { return model.rate_events(); }, model_);
  }
  [[nodiscard]] Duration rate_window() const {
    return std::visit([](const auto& model) { return model.rate_window(); }, model_);
  }

  /// Permits the streams of this model and no others.
  [[nodiscard]] Limiter<longest_distance_vector> limiter() const {
    return std::visit([](const auto& model) { return model.limiter(); }, model_);
  }

  /// Whether no more events come by this monitor than by this model, in any window: surely so if
  /// its shortest distance is no shorter than the model's mean one, as delta(q) is at most q - 1 of
  /// these.
  [[nodiscard]] bool outnumbers(const DistanceVector& monitor) const {
    return monitor.delta(2) * rate_events() >= rate_window();
  }

  /// Whether every stream of this model keeps the distances of a monitor. Distances of up to l + 1
  /// events decide: those of more events follow from them on both sides.
  [[nodiscard]] bool conforms_to(const DistanceVector& monitor) const {
    const auto distances = monitor.closed();
    for (std::size_t i = 0; i < distances.size(); ++i) {
      if (delta(static_cast<Count>(i) + 2) < distances[i]) {
        return false;
      }
    }
    return true;
  }

 private:
  std::variant<Periodic, DistanceVector, Unlimited> model_;
};

}  // namespace latenz
