// SPDX-License-Identifier: Apache-2.0
// A histogram in bounded memory, cell for cell an HdrHistogram, over counts handed in by the
// caller. Freestanding. One writer; a reader in another thread must synchronise by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/histogram_layout.hpp"

namespace latenz {

class Histogram {
 public:
  /// `counts` holds `layout.cells()` counts and outlives the histogram; what it holds already is
  /// taken as recorded.
  constexpr Histogram(const HistogramLayout& layout, std::uint64_t* counts)
      : layout_(layout), counts_(counts) {}

  [[nodiscard]] constexpr const HistogramLayout& layout() const { return layout_; }

  /// Records `times` samples; false, and nothing recorded, if the value is negative or beyond the
  /// range. Constant time.
  [[nodiscard]] constexpr bool record(std::int64_t value, std::uint64_t times = 1) {
    if (value < 0) {
      return false;
    }
    const std::size_t cell = layout_.index(static_cast<std::uint64_t>(value));
    if (cell >= layout_.cells()) {
      return false;
    }
    counts_[cell] += times;
    return true;
  }

  /// Adds all samples of another histogram; returns how many did not fit in the range.
  /// With the same layout this adds cell by cell, otherwise each cell moves as its lowest value.
  constexpr std::uint64_t merge(const Histogram& other) {
    std::uint64_t beyond = 0;
    for (std::size_t cell = 0; cell < other.layout_.cells(); ++cell) {
      const std::uint64_t times = other.counts_[cell];
      if (times == 0) {
        continue;
      }
      const auto value = static_cast<std::int64_t>(other.layout_.lowest_of(cell));
      if (!record(value, times)) {
        beyond += times;
      }
    }
    return beyond;
  }

  [[nodiscard]] constexpr std::uint64_t n() const {
    std::uint64_t total = 0;
    for (std::size_t cell = 0; cell < layout_.cells(); ++cell) {
      total += counts_[cell];
    }
    return total;
  }

  /// Cell of the rank-th smallest sample (1 is the smallest); `cells()` if there are fewer.
  [[nodiscard]] constexpr std::size_t cell_of_rank(std::uint64_t rank) const {
    std::uint64_t until = 0;
    std::size_t cell = 0;
    for (; cell < layout_.cells(); ++cell) {
      until += counts_[cell];
      if (until >= rank) {
        break;
      }
    }
    return cell;
  }

 private:
  HistogramLayout layout_;
  std::uint64_t* counts_;
};

}  // namespace latenz
