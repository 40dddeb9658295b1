// SPDX-License-Identifier: Apache-2.0
// The limit of an interrupt source at its top handler: rule R7 of docs/rules.md. Freestanding: no
// heap, no division, no atomics. The hypervisor and the simulator run this one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "latenz/monitor.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// Says when the next interrupt of a source may come so that all that came keep its event model:
/// minimum distances, and any q of them at least (q - 1) period - jitter from first to last. The
/// second is exact for every q in two steps: an interrupt is due a period after the one before it
/// was, or after it came if that was later, and may come early by the jitter. Only the earliest
/// time is kept: when it is due may lie beyond 64 bits, where it could not be told any more.
///
/// Times of interrupts must not go back.
template <std::size_t Capacity>
class Limiter {
 public:
  /// Permits everything.
  constexpr Limiter() : Limiter({}, Duration(), Duration()) {}

  /// @param distances delta-minus(2), (3), ...: none if only the period counts
  /// @param period 0 if only the distances count
  constexpr Limiter(std::span<const Duration> distances, Duration period, Duration jitter)
      : monitor_(distances), period_(period), jitter_(jitter) {}

  /// Whether an interrupt at this time keeps the model.
  [[nodiscard]] constexpr bool permits(Instant at) const { return at >= earliest(); }

  /// The earliest time at which an interrupt is permitted.
  [[nodiscard]] constexpr Instant earliest() const { return std::max(monitor_.earliest(), from_); }

  /// Notes an interrupt that was permitted; as many steps as there are distances.
  constexpr void record(Instant at) {
    monitor_.record(at);
    from_ = std::max(from_, at - jitter_) + period_;
  }

 private:
  DistanceMonitor<Capacity> monitor_;
  Duration period_;
  Duration jitter_;
  Instant from_ = Instant::long_ago();  ///< when the next interrupt is due, less the jitter
};

}  // namespace latenz
