// SPDX-License-Identifier: Apache-2.0
// The monitor that decides whether an interrupt may be handled in a foreign slot. Freestanding: no
// heap, no division, no atomics. The hypervisor, the simulator and Python run this one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "latenz/distances.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// A delta-minus monitor of length l <= Capacity (beckert2014, section 5 and appendix; there l = 1
/// in the text): of the events it accepts, any q = 2 .. l + 1 consecutive ones span at least
/// delta-minus(q). Events that it denies leave no trace.
///
/// Instead of the last l time stamps it keeps the earliest times at which each of the next l events
/// may come. So the decision is one comparison whatever l is, and what takes l steps, `record`,
/// can run after the interrupt's work has been started. Their number does not depend on the data.
///
/// Events must be offered in the order of their time stamps.
template <std::size_t Capacity>
class DistanceMonitor {
 public:
  static_assert(Capacity >= 1 && Capacity <= longest_distance_vector);

  constexpr DistanceMonitor() = default;

  /// @param distances delta-minus(2), (3), ...: none allows everything; what exceeds Capacity is
  ///        left out, which allows more.
  constexpr explicit DistanceMonitor(std::span<const Duration> distances)
      : length_(
            static_cast<std::uint32_t>(std::clamp<std::size_t>(distances.size(), 1, Capacity))) {
    std::copy_n(distances.begin(), std::min(distances.size(), Capacity), distances_);
    reset();
  }

  /// Forgets all events.
  constexpr void reset() { std::fill_n(earliest_, Capacity, Instant::long_ago()); }

  /// Whether an event at this time keeps every distance; one comparison.
  [[nodiscard]] constexpr bool permits(Instant at) const { return at >= earliest_[0]; }

  /// The earliest time at which an event is permitted.
  [[nodiscard]] constexpr Instant earliest() const { return earliest_[0]; }

  /// Notes an event that was permitted; l steps.
  constexpr void record(Instant at) {
    const std::size_t last = length() - 1;
    for (std::size_t i = 0; i < last; ++i) {
      earliest_[i] = std::max(earliest_[i + 1], at + distances_[i]);
    }
    earliest_[last] = at + distances_[last];
  }

  /// Decides and, if the event is permitted, notes it.
  constexpr bool accept(Instant at) {
    if (!permits(at)) {
      return false;
    }
    record(at);
    return true;
  }

  [[nodiscard]] constexpr std::span<const Duration> distances() const {
    return {distances_, length_};
  }

 private:
  /// Tells the compiler what the constructor made sure of: Capacity 1 needs no loop.
  [[nodiscard]] constexpr std::size_t length() const {
    if (length_ < 1 || length_ > Capacity) {
      __builtin_unreachable();
    }
    return length_;
  }

  Instant earliest_[Capacity];    ///< of the next event, the one after it, ...
  Duration distances_[Capacity];  ///< delta-minus(2), (3), ...
  std::uint32_t length_ = Capacity;
};

}  // namespace latenz
