// SPDX-License-Identifier: Apache-2.0
// Time in integer nanoseconds that never wraps: what does not fit saturates, and an analysis that
// meets the largest value says "unbounded" instead of a small wrong number. Freestanding.
#pragma once

#include <compare>
#include <cstdint>

namespace latenz {

namespace detail {

constexpr std::int64_t most = INT64_MAX;

[[nodiscard]] constexpr std::int64_t end(bool negative) { return negative ? INT64_MIN : most; }

[[nodiscard]] constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? end(a < 0) : sum;
}

[[nodiscard]] constexpr std::int64_t saturating_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? end(a < 0) : difference;
}

[[nodiscard]] constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? end((a < 0) != (b < 0)) : product;
}

}  // namespace detail

/// A length of time. `unbounded()` is the largest value; sums and products end there.
class Duration {
 public:
  constexpr Duration() = default;
  constexpr explicit Duration(std::int64_t nanoseconds) : ns_(nanoseconds) {}

  [[nodiscard]] static constexpr Duration unbounded() { return Duration(detail::most); }

  [[nodiscard]] constexpr std::int64_t ns() const { return ns_; }
  [[nodiscard]] constexpr bool is_unbounded() const { return ns_ == detail::most; }

  constexpr auto operator<=>(const Duration&) const = default;

  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }
  constexpr Duration& operator-=(Duration other) { return *this = *this - other; }

  friend constexpr Duration operator+(Duration a, Duration b) {
    return Duration(detail::saturating_add(a.ns_, b.ns_));
  }
  friend constexpr Duration operator-(Duration a, Duration b) {
    return Duration(detail::saturating_subtract(a.ns_, b.ns_));
  }
  friend constexpr Duration operator*(Duration each, std::int64_t count) {
    return Duration(detail::saturating_multiply(each.ns_, count));
  }

 private:
  std::int64_t ns_ = 0;
};

/// How many whole `part`s fit into `whole` (rounded down); `whole` >= 0, `part` > 0.
[[nodiscard]] constexpr std::int64_t whole_parts(Duration whole, Duration part) {
  return whole.ns() / part.ns();
}

/// How many `part`s cover `whole` (rounded up, in integers); `whole` >= 0, `part` > 0.
[[nodiscard]] constexpr std::int64_t covering_parts(Duration whole, Duration part) {
  return whole.ns() <= 0 ? 0 : ((whole.ns() - 1) / part.ns()) + 1;
}

/// A point in time: nanoseconds since the start of the first TDMA cycle, or of a clock.
class Instant {
 public:
  constexpr Instant() = default;
  constexpr explicit Instant(std::int64_t nanoseconds) : ns_(nanoseconds) {}

  [[nodiscard]] static constexpr Instant never() { return Instant(detail::most); }
  [[nodiscard]] static constexpr Instant long_ago() { return Instant(INT64_MIN); }

  [[nodiscard]] constexpr std::int64_t ns() const { return ns_; }

  constexpr auto operator<=>(const Instant&) const = default;

  constexpr Instant& operator+=(Duration later) { return *this = *this + later; }

  friend constexpr Instant operator+(Instant at, Duration later) {
    return Instant(detail::saturating_add(at.ns_, later.ns()));
  }
  friend constexpr Instant operator-(Instant at, Duration earlier) {
    return Instant(detail::saturating_subtract(at.ns_, earlier.ns()));
  }
  friend constexpr Duration operator-(Instant end, Instant start) {
    return Duration(detail::saturating_subtract(end.ns_, start.ns_));
  }

 private:
  std::int64_t ns_ = 0;
};

}  // namespace latenz
