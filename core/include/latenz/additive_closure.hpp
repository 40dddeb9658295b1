// SPDX-License-Identifier: Apache-2.0
// What figures of 1, 2, 3, ... things in a row imply for more of them. Used on a host; the tables
// live on the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "latenz/time.hpp"

namespace latenz {

/// A figure of n things in a row, f(n), of which the first l values are given: what any two rows
/// that make up a longer one say together holds for the longer one as well. `Better` chooses
/// between two values: with `greater`, f is the super-additive closure, as of least distances; with
/// `less` the sub-additive one, as of greatest costs.
///
/// The closure is periodic from (m - 1) l things on, m being the shortest row with the best value
/// per thing: of any m other rows some add up to a multiple of m and can be replaced by rows of m
/// without loss. So a table of (m - 1) l + m entries gives every value exactly.
template <typename Better>
class AdditiveClosure {
 public:
  /// @pre 1 .. 64 values >= 0, not decreasing
  explicit AdditiveClosure(std::span<const Duration> given) : length_(given.size()) {
    table_.reserve(length_);
    for (const Duration value : given) {
      table_.push_back(table_.empty() ? value : std::min(value, joined(), Better()));
    }
    row_ = best_row();
    const std::size_t size = std::max(((row_ - 1) * length_) + row_, length_);
    table_.reserve(size);
    while (table_.size() < size) {
      table_.push_back(joined());
    }
  }

  /// f(things), things > 0.
  [[nodiscard]] Duration operator()(std::int64_t things) const {
    const auto row = static_cast<std::int64_t>(row_);
    const std::int64_t beyond = things - static_cast<std::int64_t>(table_.size());
    const std::int64_t times = beyond <= 0 ? 0 : ((beyond - 1) / row) + 1;
    return table_[static_cast<std::size_t>(things - 1 - (times * row))] + (best() * times);
  }

  /// m, and f(m): in the long run every m things add so much.
  [[nodiscard]] std::size_t row() const { return row_; }
  [[nodiscard]] Duration best() const { return table_[row_ - 1]; }

  /// f(1), f(2), ... up to where f is periodic.
  [[nodiscard]] std::span<const Duration> table() const { return table_; }

  /// As many of these as were given.
  [[nodiscard]] std::span<const Duration> closed() const { return {table_.data(), length_}; }

 private:
  [[nodiscard]] std::size_t best_row() const {
    std::size_t best = 1;
    for (std::size_t row = 2; row <= length_; ++row) {
      __extension__ using Wide = __int128;
      const Wide longer = Wide{table_[row - 1].ns()} * static_cast<Wide>(best);
      const Wide shorter = Wide{table_[best - 1].ns()} * static_cast<Wide>(row);
      if (Better()(longer, shorter)) {
        best = row;
      }
    }
    return best;
  }

  /// What two rows that the table has say of the next longer one.
  [[nodiscard]] Duration joined() const {
    const std::size_t shorter = std::min(length_, table_.size());
    Duration found = table_.front() + table_.back();
    for (std::size_t row = 2; row <= shorter; ++row) {
      found = std::min(found, table_[row - 1] + table_[table_.size() - row], Better());
    }
    return found;
  }

  std::size_t length_;           ///< l, of the values given
  std::size_t row_ = 1;          ///< m
  std::vector<Duration> table_;  ///< f(1), f(2), ...
};

}  // namespace latenz
