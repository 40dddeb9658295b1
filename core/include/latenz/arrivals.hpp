// SPDX-License-Identifier: Apache-2.0
// Arrival times for the simulator: listed ones, or drawn from a seed. The same seed gives the same
// times on every machine. Used on a host.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <variant>

#include "latenz/distances.hpp"
#include "latenz/monitor.hpp"
#include "latenz/split_mix.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// Random numbers as simulations need them.
class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;

  /// A whole number of 0 .. most, each as likely as the others to within 2^-64 of the range.
  constexpr std::int64_t up_to(std::int64_t most) {
    __extension__ using Wide = unsigned __int128;
    const Wide scaled = Wide{next()} * (static_cast<std::uint64_t>(most) + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(scaled >> 64U));
  }

  /// An exponentially distributed time. It is the same on every machine: only additions,
  /// multiplications and one division of doubles, which IEEE 754 fixes (built without contraction).
  constexpr Duration exponential(Duration mean) {
    const double nanoseconds = minus_log(next() | 1U) * static_cast<double>(mean.ns());
    return nanoseconds < 0x1p62 ? Duration(static_cast<std::int64_t>(nanoseconds))
                                : Duration(std::int64_t{1} << 62U);
  }

 private:
  /// -ln(number / 2^64) for number > 0: its exponent, and the series of artanh for the rest.
  static constexpr double minus_log(std::uint64_t number) {
    const int leading = std::countl_zero(number);
    // 53 bits are a double exactly: fraction in [1, 2), then brought to [sqrt(1/2), sqrt(2)), where
    // the series converges fast; by tables, as half of all branches would be guessed wrong
    const auto bits = static_cast<std::int64_t>((number << static_cast<unsigned>(leading)) >> 11U);
    constexpr std::int64_t root = 6'369'051'672'525'773;  // sqrt(2) 2^52
    const bool large = bits > root;
    const double scale[] = {0x1p-52, 0x1p-53};
    const double fraction = static_cast<double>(bits) * scale[large ? 1 : 0];
    const int exponent = (large ? 0 : -1) - leading;
    const double z = (fraction - 1.0) / (fraction + 1.0);  // |z| < 0.172
    const double z2 = z * z;
    const double z4 = z2 * z2;
    const double even = 1.0 + (z4 * ((1.0 / 5) + (z4 * ((1.0 / 9) + (z4 * (1.0 / 13))))));
    const double odd = (1.0 / 3) + (z4 * ((1.0 / 7) + (z4 * ((1.0 / 11) + (z4 * (1.0 / 15))))));
    const double series = even + (z2 * odd);
    return -((2.0 * z * series) + (exponent * std::numbers::ln2));
  }
};

/// Times from a list, in order.
class ListedArrivals {
 public:
  /// @param times sorted; must outlive this object
  explicit ListedArrivals(std::span<const std::int64_t> times) : times_(times) {}

  Instant next() {
    return position_ < times_.size() ? Instant(times_[position_++]) : Instant::never();
  }

 private:
  std::span<const std::int64_t> times_;
  std::size_t position_ = 0;
};

/// Periodic arrivals from a random phase, each late by up to the jitter.
class PeriodicArrivals {
 public:
  PeriodicArrivals(Duration period, Duration jitter, Duration min_distance, std::uint64_t seed)
      : random_(seed),
        period_(period),
        jitter_(jitter),
        min_distance_(min_distance),
        due_(Instant(random_.up_to(period.ns() - 1))) {}

  Instant next() {
    const Instant late = jitter_ > Duration() ? due_ + Duration(random_.up_to(jitter_.ns())) : due_;
    last_ = std::max(late, last_ + min_distance_);
    due_ += period_;
    return last_;
  }

 private:
  Random random_;
  Duration period_;
  Duration jitter_;
  Duration min_distance_;
  Instant due_;
  Instant last_ = Instant::long_ago();
};

/// Exponentially distributed gaps, but none shorter than the minimum (beckert2014, section 6.1).
class ExponentialArrivals {
 public:
  ExponentialArrivals(Duration mean, Duration min_distance, std::uint64_t seed)
      : random_(seed), mean_(mean), min_distance_(min_distance) {}

  Instant next() { return last_ += std::max(random_.exponential(mean_), min_distance_); }

 private:
  Random random_;
  Duration mean_;
  Duration min_distance_;
  Instant last_;
};

/// Arrivals that keep minimum distances: half of them as early as allowed, the others later by an
/// exponentially distributed time.
class SporadicArrivals {
 public:
  SporadicArrivals(std::span<const Duration> distances, std::uint64_t seed)
      : random_(seed),
        mean_(std::max(Duration(1), Duration(distances.back().ns() /
                                             static_cast<std::int64_t>(distances.size())))),
        monitor_(distances),
        last_(Instant() + random_.exponential(mean_)) {}

  Instant next() {
    const Instant now = last_;
    monitor_.record(now);
    last_ = std::max(now, monitor_.earliest());
    if ((random_.next() & 1U) != 0) {
      last_ += random_.exponential(mean_);
    }
    return now;
  }

 private:
  Random random_;
  Duration mean_;
  DistanceMonitor<longest_distance_vector> monitor_;
  Instant last_;
};

/// One source's arrivals, drawn in batches so that a simulated IRQ costs no dispatch.
class Arrivals {
 public:
  template <typename Kind>
  explicit Arrivals(Kind kind) : kind_(std::move(kind)) {
    refill();
  }

  /// When the next IRQ comes; `Instant::never()` after the last.
  [[nodiscard]] Instant at() const { return batch_[position_]; }

  void advance() {
    if (++position_ == batch) {
      refill();
    }
  }

 private:
  static constexpr std::size_t batch = 256;

  void refill() {
    std::visit(
        [this](auto& kind) {
          for (Instant& instant : batch_) {
            instant = kind.next();
          }
        },
        kind_);
    position_ = 0;
  }

  std::variant<ListedArrivals, PeriodicArrivals, ExponentialArrivals, SporadicArrivals> kind_;
  Instant batch_[batch];
  std::size_t position_ = 0;
};

}  // namespace latenz
