// SPDX-License-Identifier: Apache-2.0
// Learns minimum distances from events as they come. Freestanding: no heap, no division.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "latenz/distances.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// Algorithm 1 of beckert2014: the least distance seen between an event and the 1st, 2nd, ...
/// Capacity-th before it. As printed, a trace buffer of zeros makes the first events look close to
/// time 0; here only events that have come are compared.
///
/// What was observed is a sample of what may come, never a bound on it.
template <std::size_t Capacity>
class DistanceLearner {
 public:
  static_assert(Capacity >= 1 && Capacity <= longest_distance_vector);

  constexpr DistanceLearner() { reset(); }

  constexpr void reset() {
    std::fill_n(observed_, Capacity, Duration::unbounded());
    events_ = 0;
  }

  /// Notes an event; times must not go back. 2 Capacity steps at most.
  constexpr void observe(Instant at) {
    const std::uint32_t before = std::min<std::uint32_t>(events_, Capacity);
    for (std::uint32_t i = 0; i < before; ++i) {
      observed_[i] = std::min(observed_[i], at - latest_[i]);
    }
    for (std::size_t i = Capacity - 1; i > 0; --i) {
      latest_[i] = latest_[i - 1];
    }
    latest_[0] = at;
    events_ = std::min<std::uint32_t>(events_ + 1, Capacity + 1);
  }

  /// delta-minus(2), (3), ... as far as enough events have come.
  [[nodiscard]] constexpr std::span<const Duration> observed() const {
    return {observed_, events_ == 0 ? 0 : events_ - 1};
  }

 private:
  Instant latest_[Capacity];     ///< the last events, newest first
  Duration observed_[Capacity];  ///< delta-minus(2), (3), ...
  std::uint32_t events_ = 0;     ///< so far; more than Capacity + 1 count as Capacity + 1
};

}  // namespace latenz
