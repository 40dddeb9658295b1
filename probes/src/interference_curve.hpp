// SPDX-License-Identifier: Apache-2.0
// How much time executions of interrupts took in windows of any length: a sliding window, reduced
// to a few points as it goes.
//
// Q(x) is the most execution time of interrupts that begin in a half-open window of length x. The
// executions i..j begin in such a window if begin(j) - begin(i) < x. So Q is a staircase with a
// step above each span begin(j) - begin(i), and of its steps only those count that are higher than
// every step at a shorter span.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace latenz::probe {

/// A step of the staircase: windows longer than `span` hold executions of this `sum`.
struct CurveStep {
  std::uint64_t span;
  std::uint64_t sum;
  friend bool operator==(const CurveStep&, const CurveStep&) = default;
};

/// Steps with ascending spans and sums. With more than `most` of them, some are rounded up.
class Staircase {
 public:
  explicit Staircase(std::size_t most) : most_(most) {}

  /// Returns Q for windows just above a span.
  [[nodiscard]] std::uint64_t at(std::uint64_t span) const {
    const auto above = std::ranges::upper_bound(steps_, span, {}, &CurveStep::span);
    return above == steps_.begin() ? 0 : std::prev(above)->sum;
  }

  void add(CurveStep step) {
    if (at(step.span) >= step.sum) {
      return;
    }
    const auto first = std::ranges::lower_bound(steps_, step.span, {}, &CurveStep::span);
    const auto last =
        std::find_if(first, steps_.end(), [&](const auto& each) { return each.sum > step.sum; });
    const auto place = steps_.erase(first, last);
    steps_.insert(place, step);
    if (steps_.size() > 2 * most_) {
      reduce(most_);
    }
  }

  void add(const Staircase& other) { add(std::span(other.steps_)); }

  /// Adds windows. Nearly all of them are below a step: most are below what is known of windows
  /// that are a little shorter, as the staircase only rises.
  void add(std::span<const CurveStep> windows) {
    if (steps_.size() < few) {
      for (const CurveStep& window : windows) add(window);
      return;
    }
    floors_.resize(ranges);
    for (const CurveStep& window : windows) {
      const std::size_t range = range_of(window.span);
      if (floors_[range] >= window.sum) continue;
      add(window);
      floors_[range] = at(begin_of(range));
    }
  }

  /// Rounds up until there are at most so many steps: two become one at the shorter span with the
  /// greater sum, and those two that differ least.
  void reduce(std::size_t most) {
    while (steps_.size() > std::max<std::size_t>(most, 1)) {
      std::size_t best = 0;
      double least = std::numeric_limits<double>::max();
      for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
        const double rise =
            static_cast<double>(steps_[i + 1].sum) / (1.0 + static_cast<double>(steps_[i].sum));
        if (rise < least) {
          least = rise;
          best = i;
        }
      }
      steps_[best].sum = steps_[best + 1].sum;
      steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }

  void clear() {
    steps_.clear();
    floors_.clear();
  }
  [[nodiscard]] const std::vector<CurveStep>& steps() const { return steps_; }

 private:
  static constexpr std::size_t few = 32;
  static constexpr std::size_t ranges = 496;  // of spans: up to 16 each its own, then 8 an octave

  static std::size_t range_of(std::uint64_t span) {
    if (span < 16) return span;
    const auto width = static_cast<std::size_t>(std::bit_width(span));
    return (width - 3) * 8 + (span >> (width - 4) & 7U);
  }
  static std::uint64_t begin_of(std::size_t range) {
    return range < 16 ? range : std::uint64_t{8 + range % 8} << (range / 8 - 1);
  }

  std::size_t most_;
  std::vector<CurveStep> steps_;
  std::vector<std::uint64_t> floors_;  ///< of each range of spans the step at its begin, or lower
};

/// The last executions, and what they make of windows.
class ExecutionWindow {
 public:
  static constexpr std::size_t depth = 128;
  /// Distances and sums of so many consecutive executions are kept.
  static constexpr std::size_t consecutive = 64;

  /// Takes an execution that began at `begin`, not before the last one, and took `own`; every
  /// window that ends with it goes into `steps`.
  void add(std::uint64_t begin, std::uint64_t own, Staircase& steps) {
    steps.add(windows_of(begin, own));
  }

  /// Takes such an execution, and returns every window that ends with it and is shorter than the
  /// horizon, behind which nobody reads; by ascending span, valid until the next one.
  [[nodiscard]] std::span<const CurveStep> windows_of(std::uint64_t begin, std::uint64_t own) {
    begins_[count_ % depth] = begin;
    owns_[count_ % depth] = own;
    ++count_;
    std::uint64_t sum = 0;
    const std::size_t back = std::min<std::size_t>(count_, depth);
    if (back == depth) {
      horizon_ = std::min(horizon_, begin - begins_[count_ % depth]);
    }
    std::size_t told = 0;
    for (std::size_t i = 0; i < back; ++i) {
      const std::size_t at = (count_ - 1 - i) % depth;
      const std::uint64_t span = begin - begins_[at];
      sum += owns_[at];
      if (span < horizon_) {
        windows_[told++] = {span, sum};
      } else if (i >= consecutive) {
        break;
      }
      if (i < consecutive) {
        shortest_[i] = std::min(shortest_[i], span);
        largest_[i] = std::max(largest_[i], sum);
      }
    }
    return std::span(windows_).first(told);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The shortest window that may hold more executions than were looked at: the steps hold up to
  /// it.
  [[nodiscard]] std::uint64_t horizon() const { return horizon_; }
  /// Shortest time from the begin of one execution to that of the q-th after it.
  [[nodiscard]] std::uint64_t shortest(std::size_t q) const { return shortest_.at(q); }
  /// Longest time that q + 1 consecutive executions took.
  [[nodiscard]] std::uint64_t largest(std::size_t q) const { return largest_.at(q); }
  [[nodiscard]] std::size_t known() const { return std::min<std::size_t>(count_, consecutive); }

 private:
  std::array<CurveStep, depth> windows_{};
  std::array<std::uint64_t, depth> begins_{};
  std::array<std::uint64_t, depth> owns_{};
  std::uint64_t count_ = 0;
  std::uint64_t horizon_ = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint64_t, consecutive> largest_{};
  std::array<std::uint64_t, consecutive> shortest_ = [] {
    std::array<std::uint64_t, consecutive> all{};
    all.fill(std::numeric_limits<std::uint64_t>::max());
    return all;
  }();
};

}  // namespace latenz::probe
