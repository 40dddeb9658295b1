// SPDX-License-Identifier: Apache-2.0
// Where a value lies in an HdrHistogram: the cell layout of hdrhistogram.org, index for index.
// Freestanding. Values up to 2^subBucketBits units have cells of one unit; beyond, each doubling of
// the value doubles the cell, so that a cell is never wider than its value / 10^significant digits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace latenz {

class HistogramLayout {
 public:
  /// Lays out cells for values from 0 to at least `highest`.
  ///
  /// `lowest_discernible`: values below it need not be told apart (HdrHistogram rounds it down to a
  /// power of two). `significant_digits`: decimal digits kept of any value, 1 to 5.
  /// Use only if `valid` says so of the same arguments.
  constexpr HistogramLayout(std::uint64_t lowest_discernible, std::uint64_t highest,
                            unsigned significant_digits)
      : lowest_discernible_(lowest_discernible),
        highest_(highest),
        significant_digits_(significant_digits),
        unit_bits_(static_cast<unsigned>(std::bit_width(lowest_discernible)) - 1U),
        sub_bucket_bits_(sub_bucket_bits(significant_digits)),
        mask_(((std::uint64_t{1} << sub_bucket_bits_) - 1U) << unit_bits_),
        buckets_(bucket_count(highest, sub_bucket_bits_ + unit_bits_)) {}

  /// Whether a layout can be made: highest >= 2 * lowest >= 2, 1 to 5 digits, and at least one
  /// doubling of the value left within 63 bits.
  [[nodiscard]] static constexpr bool valid(std::uint64_t lowest_discernible, std::uint64_t highest,
                                            unsigned significant_digits) {
    if (lowest_discernible < 1 || significant_digits < 1 || significant_digits > 5) {
      return false;
    }
    if (highest / 2 < lowest_discernible) {
      return false;
    }
    const auto unit_bits = static_cast<unsigned>(std::bit_width(lowest_discernible)) - 1U;
    return unit_bits + sub_bucket_bits(significant_digits) <= 62;
  }

  [[nodiscard]] constexpr std::uint64_t lowest_discernible() const { return lowest_discernible_; }
  [[nodiscard]] constexpr std::uint64_t highest() const { return highest_; }
  [[nodiscard]] constexpr unsigned significant_digits() const { return significant_digits_; }

  /// Number of cells, HdrHistogram's counts array length.
  [[nodiscard]] constexpr std::size_t cells() const {
    return (static_cast<std::size_t>(buckets_) + 1) << (sub_bucket_bits_ - 1U);
  }

  /// Cell of a value; at or past `cells()` if the value is beyond the range.
  [[nodiscard]] constexpr std::size_t index(std::uint64_t value) const {
    const unsigned bucket = bucket_of(value);
    const auto sub_bucket = static_cast<std::size_t>(value >> (bucket + unit_bits_));
    return (static_cast<std::size_t>(bucket) << (sub_bucket_bits_ - 1U)) + sub_bucket;
  }

  /// Smallest value of a cell.
  [[nodiscard]] constexpr std::uint64_t lowest_of(std::size_t cell) const {
    const unsigned half_bits = sub_bucket_bits_ - 1U;
    const std::size_t half = std::size_t{1} << half_bits;
    if (cell < half) {
      return static_cast<std::uint64_t>(cell) << unit_bits_;
    }
    const auto bucket = static_cast<unsigned>(cell >> half_bits) - 1U;
    const auto sub_bucket = static_cast<std::uint64_t>((cell & (half - 1U)) | half);
    return sub_bucket << (bucket + unit_bits_);
  }

  /// How many values share a cell with this one.
  [[nodiscard]] constexpr std::uint64_t width_at(std::uint64_t value) const {
    return std::uint64_t{1} << (unit_bits_ + bucket_of(value));
  }

  /// Smallest value in the same cell.
  [[nodiscard]] constexpr std::uint64_t lowest_equivalent(std::uint64_t value) const {
    return value & ~(width_at(value) - 1U);
  }

  /// Largest value in the same cell.
  [[nodiscard]] constexpr std::uint64_t highest_equivalent(std::uint64_t value) const {
    return value | (width_at(value) - 1U);
  }

 private:
  static constexpr unsigned sub_bucket_bits(unsigned significant_digits) {
    std::uint64_t resolved = 2;  // values resolved to one unit: 2 * 10^digits
    for (unsigned i = 0; i < significant_digits; ++i) {
      resolved *= 10U;
    }
    return static_cast<unsigned>(std::bit_width(resolved - 1U));
  }

  static constexpr unsigned bucket_count(std::uint64_t highest, unsigned bits_in_first) {
    const auto needed = static_cast<unsigned>(std::bit_width(highest));
    return needed <= bits_in_first ? 1U : needed - bits_in_first + 1U;
  }

  [[nodiscard]] constexpr unsigned bucket_of(std::uint64_t value) const {
    return static_cast<unsigned>(std::bit_width(value | mask_)) - sub_bucket_bits_ - unit_bits_;
  }

  std::uint64_t lowest_discernible_;
  std::uint64_t highest_;
  unsigned significant_digits_;
  unsigned unit_bits_;
  unsigned sub_bucket_bits_;
  std::uint64_t mask_;
  unsigned buckets_;
};

}  // namespace latenz
