// SPDX-License-Identifier: Apache-2.0
// Count, extremes, mean, jitter and variance of any int64 latencies in one pass, mergeable.
// Freestanding. Sums are exact integers: nothing is lost however large the values or many the
// samples, and parts merged in any order give the same bits as the whole.
#pragma once

#include <cstdint>

#include "latenz/wide_integer.hpp"

namespace latenz {

/// Exact moments of fewer than 2^63 samples.
class Moments {
 public:
  /// Adds one latency; a few nanoseconds.
  constexpr void add(std::int64_t value) {
    include(value, 1);
    sum_ += WideInteger<2>::from_signed(value);
    squares_ += WideInteger<2>::multiply(magnitude(value), magnitude(value)).resized<3>();
  }

  /// Adds `times` samples of one latency.
  constexpr void add(std::int64_t value, std::uint64_t times) {
    if (times == 0) {
      return;
    }
    include(value, times);
    const std::uint64_t size = magnitude(value);
    const auto total = WideInteger<2>::multiply(size, times);
    sum_ += value < 0 ? total.negated() : total;
    squares_.add_product(WideInteger<2>::multiply(size, size), times);
  }

  constexpr void merge(const Moments& other) {
    if (other.n_ == 0) {
      return;
    }
    if (n_ == 0 || other.min_ < min_) {
      min_ = other.min_;
    }
    if (n_ == 0 || other.max_ > max_) {
      max_ = other.max_;
    }
    n_ += other.n_;
    sum_ += other.sum_;
    squares_ += other.squares_;
  }

  [[nodiscard]] constexpr std::uint64_t n() const { return n_; }
  /// Smallest latency; 0 without samples.
  [[nodiscard]] constexpr std::int64_t min() const { return min_; }
  /// Largest latency; 0 without samples.
  [[nodiscard]] constexpr std::int64_t max() const { return max_; }
  /// Sum of all latencies, signed.
  [[nodiscard]] constexpr const WideInteger<2>& sum() const { return sum_; }
  /// Sum of the squares of all latencies, unsigned.
  [[nodiscard]] constexpr const WideInteger<3>& sum_of_squares() const { return squares_; }

  /// Mean; needs at least one sample.
  [[nodiscard]] constexpr double mean() const {
    const double size = sum_.magnitude().to_double() / static_cast<double>(n_);
    return sum_.negative() ? -size : size;
  }

  /// The greater of max - mean and mean - min (Alonso et al. 2024); needs at least one sample.
  /// Computed on integers: the difference of two rounded numbers would lose all digits near 2^62.
  [[nodiscard]] constexpr double jitter() const {
    const double above = distance_from_sum(max_).magnitude().to_double();
    const double below = distance_from_sum(min_).magnitude().to_double();
    return (above > below ? above : below) / static_cast<double>(n_);
  }

  /// Variance of the sample, (sum of squares - sum^2 / n) / (n - 1); needs at least two samples.
  /// The deviation is its square root, left to the caller: freestanding targets have none.
  [[nodiscard]] constexpr double variance() const {
    WideInteger<4> scaled;  // n^2 (n - 1) / n times the variance, below 2^254
    scaled.add_product(squares_, n_);
    const WideInteger<2> total = sum_.magnitude();
    WideInteger<4> square;
    square.add_product(total, total.limb[0]);
    square.add_product(total, total.limb[1], 1);
    scaled -= square;
    return scaled.to_double() / static_cast<double>(n_) / static_cast<double>(n_ - 1);
  }

 private:
  constexpr void include(std::int64_t value, std::uint64_t times) {
    if (n_ == 0 || value < min_) {
      min_ = value;
    }
    if (n_ == 0 || value > max_) {
      max_ = value;
    }
    n_ += times;
  }

  static constexpr std::uint64_t magnitude(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    return value < 0 ? 0 - bits : bits;
  }

  [[nodiscard]] constexpr WideInteger<2> distance_from_sum(std::int64_t value) const {
    WideInteger<2> scaled = WideInteger<2>::multiply(magnitude(value), n_);
    if (value < 0) {
      scaled = scaled.negated();
    }
    return scaled -= sum_;
  }

  std::uint64_t n_ = 0;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
  WideInteger<2> sum_;
  WideInteger<3> squares_;
};

}  // namespace latenz
