// SPDX-License-Identifier: Apache-2.0
// Eqs. (11) and (16) of beckert2014 exactly as printed, for comparison only: neither is sound (see
// docs/beckert2014.md). bound.hpp has the bound to rely on.
#pragma once

#include <algorithm>
#include <cstddef>

#include "latenz/system.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// One printed equation for one source.
class PrintedEquation {
 public:
  enum class Number : std::uint8_t {
    eq11,  ///< delayed handling: waits for foreign slots
    eq16,  ///< every IRQ satisfies d_min: interposed handling
  };

  PrintedEquation(const System& system, std::size_t source, Number number, Duration horizon)
      : system_(system), source_(source), number_(number), horizon_(horizon) {
    own_ = Duration();
    for (const Slot& slot : system.table().slots()) {
      if (slot.partition == system.sources()[source].partition) {
        own_ += slot.length;
      }
    }
  }

  /// Eq. (12): the largest W(q) - delta-minus(q) over the q of Eq. (4); unbounded past the horizon
  /// or after too many steps.
  [[nodiscard]] Duration latency() const {
    const Source& source = system_.sources()[source_];
    Duration worst;
    Duration busy;
    int steps_left = most_steps;
    for (Count q = 1; source.arrival.delta(q) <= busy; ++q) {
      busy = busy_time(q, busy, steps_left);
      if (busy.is_unbounded()) {
        return busy;
      }
      worst = std::max(worst, busy - source.arrival.delta(q));
    }
    return worst;
  }

 private:
  static constexpr int most_steps = 1 << 22;

  /// The least fixed point of W(q); it is not below that of W(q - 1).
  [[nodiscard]] Duration busy_time(Count q, Duration before, int& steps_left) const {
    Duration busy = std::max(Duration(1), before);
    for (; steps_left > 0; --steps_left) {
      const Duration next = right_side(q, busy);
      if (next <= busy) {
        return busy;
      }
      if (next > horizon_) {
        break;
      }
      busy = next;
    }
    return Duration::unbounded();
  }

  [[nodiscard]] Duration right_side(Count q, Duration busy) const {
    const bool interposed = number_ == Number::eq16;
    const Source& own = system_.sources()[source_];
    const Costs& costs = system_.costs();
    Duration sum = (interposed ? own.bottom + costs.interposing() : own.bottom) * q;
    for (std::size_t i = 0; i < system_.sources().size(); ++i) {
      const Source& source = system_.sources()[i];
      const bool monitored = interposed && i == source_;
      sum += (monitored ? source.top + costs.monitor : source.top) * source.arrival.eta(busy);
    }
    if (!interposed) {
      const Duration cycle = system_.table().cycle();
      sum += (cycle - own_) * covering_parts(busy, cycle);  // Eq. (8)
    }
    return sum;
  }

  const System& system_;
  std::size_t source_;
  Number number_;
  Duration horizon_;
  Duration own_;  ///< T_i: all slots of the source's partition
};

}  // namespace latenz
