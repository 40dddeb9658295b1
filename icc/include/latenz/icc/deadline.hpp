// SPDX-License-Identifier: Apache-2.0
// Deadlines of waiting calls. Anything with `bool expired()` is one; it is asked once in
// `Wait::looks_per_check` looks. One that also has `left_ns()` is kept to the point by a policy
// that sleeps; another is overrun by at most its `longest_sleep_ns`.
#pragma once

#include <concepts>
#include <cstdint>

namespace latenz::icc {

template <class T>
concept Deadline = requires(T& deadline) {
  { deadline.expired() } -> std::convertible_to<bool>;
};

/// No deadline: the call ends when it is done, or the peer is gone: it has left, or has given no
/// sign of life for `Wait::silent_beats`. A peer that neither waits nor sends for long calls
/// `beat`.
struct Never {
  static bool expired() noexcept { return false; }
};

/// After so many checks, for programs without a clock.
struct Checks {
  std::uint32_t left;

  bool expired() noexcept {
    if (left == 0) {
      return true;
    }
    --left;
    return false;
  }
};

/// At a time of `Clock`, whose static `now_ns()` tells a steady time in nanoseconds (int64).
template <class Clock>
struct Until {
  std::int64_t time_ns;

  static Until after(std::int64_t duration_ns) noexcept { return {Clock::now_ns() + duration_ns}; }
  [[nodiscard]] bool expired() const noexcept { return Clock::now_ns() >= time_ns; }
  /// Until then; 0 from then on.
  [[nodiscard]] std::int64_t left_ns() const noexcept {
    const std::int64_t now_ns = Clock::now_ns();
    return time_ns > now_ns ? time_ns - now_ns : 0;
  }
};

}  // namespace latenz::icc
