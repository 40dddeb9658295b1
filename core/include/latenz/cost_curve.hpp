// SPDX-License-Identifier: Apache-2.0
// What consecutive executions of a handler take together. Used on a host; the tables live on the
// heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "latenz/additive_closure.hpp"
#include "latenz/event_model.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// gamma(q): the longest time that any q consecutive executions take together; gamma(1) is the
/// worst case of one. Where a handler does more now and then (each tenth tick, a timer that
/// expires, a buffer that is full) it is far below q gamma(1). The workload curve of Maxiaguine,
/// Kuenzli and Thiele (DATE 2004), upper one.
///
/// Given for up to l executions; what these imply is the sub-additive closure: more executions take
/// no more than any rows that they are made of. Laws, tested: gamma(0) = 0, it does not decrease,
/// and gamma(a + b) <= gamma(a) + gamma(b).
class CostCurve {
 public:
  /// @param sums gamma(1), gamma(2), ...; what exceeds the sum of its parts is lowered to it
  /// @pre 1 .. 64 sums >= 0, not decreasing
  explicit CostCurve(std::span<const Duration> sums) : executions_(sums) {}

  /// gamma(q).
  [[nodiscard]] Duration sum(Count q) const { return q < 1 ? Duration() : executions_(q); }

  /// In the long run every `rate_events()` executions take at most `rate_cost()`.
  [[nodiscard]] Count rate_events() const { return static_cast<Count>(executions_.row()); }
  [[nodiscard]] Duration rate_cost() const { return executions_.best(); }

  /// The closed curve, as long as the one given.
  [[nodiscard]] std::span<const Duration> closed() const { return executions_.closed(); }

 private:
  AdditiveClosure<std::less<>> executions_;
};

/// Execution times that keep a cost curve, each as long as those before it permit: the first q of
/// them take exactly gamma(q), and no sequence that keeps the curve ever takes more up to there.
class CostMeter {
 public:
  /// @param sums closed: gamma(1), gamma(2), ...
  explicit CostMeter(std::span<const Duration> sums)
      : sums_(sums.begin(), sums.end()), last_(sums.size()) {}

  /// What the next execution takes.
  [[nodiscard]] Duration next() {
    Duration cost = sums_.front();
    for (std::size_t before = 1; before < sums_.size(); ++before) {
      cost = std::min(cost, sums_[before] - last_[before]);
    }
    for (std::size_t executions = last_.size() - 1; executions > 0; --executions) {
      last_[executions] = last_[executions - 1] + cost;
    }
    return cost;
  }

 private:
  std::vector<Duration> sums_;
  std::vector<Duration> last_;  ///< what the last 0, 1, 2, ... executions took together
};

}  // namespace latenz
