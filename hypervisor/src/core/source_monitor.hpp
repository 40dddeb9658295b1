// SPDX-License-Identifier: Apache-2.0
// A source's monitor, and how it learns what to allow (beckert2014, appendix). Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dispatcher_plan.hpp"
#include "late.hpp"
#include "latenz/distances.hpp"
#include "latenz/learner.hpp"
#include "latenz/monitor.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// Off, learning, or on. All arrivals are learned from; of those that a monitor is asked about it
/// remembers the ones that it accepts.
class SourceMonitor {
 public:
  /// @param source must outlive the learning phase
  void begin(const PlannedSource& source, Mode mode) {
    source_ = &source;
    learn_left_ = 0;
    phase_ = Phase::off;
    if (!source.monitored || mode == Mode::plain) return;
    if (source.learned > 0 && source.learn_events > 0) {
      learner_.make();
      learn_left_ = source.learn_events;
      phase_ = Phase::learning;
    } else {
      switch_on(source.distances);
    }
  }

  [[nodiscard]] bool is_learning() const { return phase_ == Phase::learning; }
  [[nodiscard]] bool is_on() const { return phase_ == Phase::on; }

  /// While learning: at most 2 longest_distance_vector steps, and with the last event 4 more.
  [[gnu::noinline]] void learn(Instant at) {
    learner_->observe(at);
    if (--learn_left_ == 0) finish_learning();
  }

  /// While on: whether the event keeps all distances to those accepted before.
  bool accept(Instant at) { return monitor_->accept(at); }

  /// delta-minus(2), (3), ... while on, closed: what the monitor guarantees. That takes half the
  /// square of their number, so it is for when all is over. Nothing is closed before: events that
  /// keep every distance to those accepted before keep the sums of distances too, so that a monitor
  /// decides alike with the closed vector and with this one.
  /// @param room for the answer
  [[nodiscard]] std::span<const Duration> guaranteed(
      std::span<Duration, longest_distance_vector> room) const {
    if (!is_on()) return {};
    const std::span<const Duration> enforced = monitor_->distances();
    const std::span<Duration> found = room.first(enforced.size());
    std::ranges::copy(enforced, found.begin());
    close_super_additively(found);
    return found;
  }

 private:
  enum class Phase : std::uint8_t { off, learning, on };

  void switch_on(std::span<const Duration> distances) {
    monitor_.make(distances);
    phase_ = Phase::on;
  }

  /// Algorithm 2. A distance that too few events have come for is the allowed one; if neither is
  /// known nothing may be interposed.
  void finish_learning() {
    const std::span<const Duration> allowed = source_->distances;
    const auto observed = learner_->observed();
    const std::size_t seen = std::min<std::size_t>(observed.size(), source_->learned);
    const std::size_t length =
        std::min(std::max(seen, allowed.size()), std::size_t{longest_distance_vector});
    std::array<Duration, longest_distance_vector> room{};
    const std::span<Duration> learned = std::span(room).first(length);
    std::copy_n(observed.begin(), seen, learned.begin());
    raise_to(learned, allowed);
    phase_ = Phase::off;
    if (length > 0) switch_on(learned);
  }

  const PlannedSource* source_ = nullptr;
  std::uint64_t learn_left_ = 0;
  Phase phase_ = Phase::off;
  Late<DistanceLearner<longest_distance_vector>> learner_;
  Late<DistanceMonitor<longest_distance_vector>> monitor_;
};

}  // namespace latenz::hypervisor
