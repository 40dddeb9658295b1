// SPDX-License-Identifier: Apache-2.0
// A further pass over the latencies that narrows the interval of a wanted order statistic: keeps
// all samples of the interval if they fit in the memory handed in, else counts them in finer cells.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "latenz/sample_scan.hpp"

namespace latenz {

class RankRefinement {
 public:
  /// `memory` holds `capacity` zeroed words, at least two, and outlives the refinement.
  RankRefinement(const RankInterval& interval, std::int64_t* memory, std::size_t capacity)
      : interval_(interval),
        memory_(memory),
        keeps_(interval.within <= capacity),
        shift_(cell_shift(interval, capacity)) {}

  void add(const std::int64_t* values, std::size_t count) {
    const std::uint64_t span = offset(interval_.highest);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t position = offset(values[i]);
      if (position > span) {
        continue;
      }
      if (keeps_) {
        memory_[kept_++] = values[i];
      } else {
        ++memory_[position >> shift_];
      }
    }
  }

  /// The narrower interval of the rank-th smallest latency, after a whole pass; `rank` must lie in
  /// the interval given.
  [[nodiscard]] RankInterval locate(std::uint64_t rank) const {
    const std::uint64_t inner = rank - interval_.before;
    if (keeps_) {
      std::int64_t* const wanted = memory_ + (inner - 1);
      std::nth_element(memory_, wanted, memory_ + kept_);
      return {.lowest = *wanted, .highest = *wanted, .before = rank - 1, .within = 1};
    }
    std::uint64_t until = 0;
    std::size_t cell = 0;
    while (until + count(cell) < inner) {
      until += count(cell++);
    }
    const std::uint64_t first = static_cast<std::uint64_t>(cell) << shift_;
    const std::uint64_t last =
        std::min(first | ((std::uint64_t{1} << shift_) - 1U), offset(interval_.highest));
    return {
        .lowest = at(first),
        .highest = at(last),
        .before = interval_.before + until,
        .within = count(cell),
    };
  }

 private:
  /// Cells of 2^shift values each that cover the interval with `capacity` cells.
  static unsigned cell_shift(const RankInterval& interval, std::size_t capacity) {
    const std::uint64_t span =
        static_cast<std::uint64_t>(interval.highest) - static_cast<std::uint64_t>(interval.lowest);
    const auto wanted = static_cast<unsigned>(std::bit_width(span));
    const auto given = static_cast<unsigned>(std::bit_width(capacity)) - 1U;
    return wanted > given ? wanted - given : 0U;
  }

  [[nodiscard]] std::uint64_t offset(std::int64_t value) const {
    return static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(interval_.lowest);
  }

  [[nodiscard]] std::int64_t at(std::uint64_t position) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(interval_.lowest) + position);
  }

  [[nodiscard]] std::uint64_t count(std::size_t cell) const {
    return static_cast<std::uint64_t>(memory_[cell]);
  }

  RankInterval interval_;
  std::int64_t* memory_;
  bool keeps_;
  unsigned shift_;
  std::size_t kept_ = 0;
};

}  // namespace latenz
