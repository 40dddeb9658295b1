// SPDX-License-Identifier: Apache-2.0
// One pass over any number of latencies that leaves exact moments and, nearly always, every order
// statistic: a window of 1 ns cells where most latencies lie, and a list of the few that do not.
// Freestanding; all memory is handed in by the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "latenz/histogram_layout.hpp"
#include "latenz/moments.hpp"

namespace latenz {

/// Inclusive interval of latencies that holds a wanted order statistic.
struct RankInterval {
  std::int64_t lowest;
  std::int64_t highest;
  std::uint64_t before;  ///< samples smaller than `lowest`
  std::uint64_t within;  ///< samples in the interval
};

/// Counts of all int64 latencies: exact within [base, base + window cells), in cells of relative
/// width 1/1024 of the distance outside it.
class SampleScan {
 public:
  /// Cells for the latencies on one side of the window.
  static constexpr HistogramLayout outside{1, ~std::uint64_t{0}, 3};

  /// Zeroed memory, owned by the caller, that outlives the scan.
  struct Storage {
    std::uint64_t* window;
    std::size_t window_cells;
    std::uint64_t* below;  ///< `outside.cells()` counts
    std::uint64_t* above;  ///< `outside.cells()` counts
    std::int64_t* spill;   ///< latencies outside the window, as long as they fit
    std::size_t spill_capacity;
  };

  /// `base`: where the window starts, or as near below as keeps it within int64.
  SampleScan(const Storage& storage, std::int64_t base)
      : storage_(storage), base_(std::min(base, last_base(storage.window_cells))) {}

  void add(const std::int64_t* values, std::size_t count) {
    const std::size_t cells = storage_.window_cells;
    std::uint64_t* const window = storage_.window;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t offset = distance(base_, values[i]);
      if (offset < cells) [[likely]] {
        ++window[offset];
      } else {
        add_outside(values[i]);
      }
    }
  }

  /// Adds what another scan with the same base and as many cells counted.
  void merge(const SampleScan& other) {
    for (std::size_t i = 0; i < storage_.window_cells; ++i) {
      storage_.window[i] += other.storage_.window[i];
    }
    for (std::size_t i = 0; i < outside.cells(); ++i) {
      storage_.below[i] += other.storage_.below[i];
      storage_.above[i] += other.storage_.above[i];
    }
    const std::size_t fitting = std::min(other.spilled_, storage_.spill_capacity - spilled_);
    std::copy_n(other.storage_.spill, fitting, storage_.spill + spilled_);
    spilled_ += fitting;
    below_n_ += other.below_n_;
    outside_moments_.merge(other.outside_moments_);
  }

  /// Moments of all samples so far; walks the window.
  [[nodiscard]] Moments moments() const {
    Moments all = outside_moments_;
    for (std::size_t i = 0; i < storage_.window_cells; ++i) {
      all.add(at(i), storage_.window[i]);
    }
    return all;
  }

  /// Latencies outside the window, in order of arrival: all of them if `spill_complete()`.
  [[nodiscard]] std::int64_t* spill() const { return storage_.spill; }
  [[nodiscard]] std::size_t spilled() const { return spilled_; }
  [[nodiscard]] bool spill_complete() const { return spilled_ == outside_window(); }
  [[nodiscard]] std::uint64_t outside_window() const { return outside_moments_.n(); }
  [[nodiscard]] std::uint64_t below_window() const { return below_n_; }

  /// Where the rank-th smallest latency lies (1 is the smallest, at most the number of samples):
  /// one value if it is within the window.
  [[nodiscard]] RankInterval locate(std::uint64_t rank) const {
    std::uint64_t until = 0;
    for (std::size_t i = outside.cells(); i-- > 0;) {
      if (storage_.below[i] == 0) {
        continue;
      }
      if (until + storage_.below[i] >= rank) {
        return below_interval(i, until);
      }
      until += storage_.below[i];
    }
    for (std::size_t i = 0; i < storage_.window_cells; ++i) {
      const std::uint64_t within = storage_.window[i];
      if (until + within >= rank) {
        return {.lowest = at(i), .highest = at(i), .before = until, .within = within};
      }
      until += within;
    }
    std::size_t cell = 0;
    while (until + storage_.above[cell] < rank) {
      until += storage_.above[cell++];
    }
    return above_interval(cell, until);
  }

 private:
  static std::int64_t last_base(std::size_t cells) {
    return cells == 0 ? INT64_MAX : INT64_MAX - static_cast<std::int64_t>(cells - 1);
  }

  /// How far above `low` a value lies; wraps to a huge number if it lies below.
  static std::uint64_t distance(std::int64_t low, std::int64_t value) {
    return static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(low);
  }

  static std::int64_t shifted(std::int64_t value, std::uint64_t by) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + by);
  }

  [[nodiscard]] std::int64_t at(std::size_t cell) const { return shifted(base_, cell); }

  void add_outside(std::int64_t value) {
    outside_moments_.add(value);
    if (value < base_) {
      ++storage_.below[outside.index(distance(value, base_))];
      ++below_n_;
    } else {
      ++storage_.above[outside.index(distance(base_, value))];
    }
    if (spilled_ < storage_.spill_capacity) {
      storage_.spill[spilled_++] = value;
    }
  }

  [[nodiscard]] RankInterval below_interval(std::size_t cell, std::uint64_t before) const {
    const std::uint64_t near = outside.lowest_of(cell);
    const std::uint64_t far = outside.highest_equivalent(near);
    const std::uint64_t room = distance(INT64_MIN, base_);
    return {
        .lowest = far > room ? INT64_MIN : shifted(base_, 0 - far),
        .highest = shifted(base_, 0 - near),
        .before = before,
        .within = storage_.below[cell],
    };
  }

  [[nodiscard]] RankInterval above_interval(std::size_t cell, std::uint64_t before) const {
    const std::uint64_t near = outside.lowest_of(cell);
    const std::uint64_t far = outside.highest_equivalent(near);
    const std::uint64_t room = distance(base_, INT64_MAX);
    return {
        .lowest = shifted(base_, near),
        .highest = far > room ? INT64_MAX : shifted(base_, far),
        .before = before,
        .within = storage_.above[cell],
    };
  }

  Storage storage_;
  std::int64_t base_;
  std::size_t spilled_ = 0;
  std::uint64_t below_n_ = 0;
  Moments outside_moments_;
};

}  // namespace latenz
