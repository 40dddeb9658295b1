// SPDX-License-Identifier: Apache-2.0
// The latencies of activations that got no run of their own because the one before was late: with a
// period P and a latency L, the k-th skipped one had waited for L - k P. Freestanding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace latenz {

/// Of `missed` activations (not negative) skipped after one that was `latency_ns` late, those that
/// its lateness explains: they were due before it ran. Nothing tells when the others would have
/// run.
[[nodiscard]] constexpr std::uint64_t skipped_while_waiting(std::int64_t latency_ns,
                                                            std::int64_t missed,
                                                            std::int64_t period_ns) {
  if (period_ns <= 0 || latency_ns < period_ns) {
    return 0;
  }
  return static_cast<std::uint64_t>(std::min(missed, latency_ns / period_ns));
}

/// The latencies of skipped activations one after the other, as blocks that fit in a cache. Time
/// grows with the number of skipped activations: the caller limits that.
class SkippedLatencies {
 public:
  /// `missed[i]` activations were skipped after the one with `latencies[i]`; both outlive this.
  SkippedLatencies(const std::int64_t* latencies, const std::int64_t* missed, std::size_t count,
                   std::int64_t period_ns)
      : latencies_(latencies), missed_(missed), count_(count), period_ns_(period_ns) {}

  /// Writes the next latencies, at most `room` of them; returns how many, 0 at the end.
  std::size_t next(std::int64_t* block, std::size_t room) {
    std::size_t written = 0;
    while (written < room && (left_ > 0 || take_next())) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left_, room - written));
      for (std::size_t i = 0; i < part; ++i) {
        latency_ns_ -= period_ns_;
        block[written++] = latency_ns_;
      }
      left_ -= part;
    }
    return written;
  }

 private:
  /// Goes to the next activation after which some were skipped.
  bool take_next() {
    for (; place_ < count_; ++place_) {
      if (missed_[place_] == 0) {
        continue;
      }
      left_ = skipped_while_waiting(latencies_[place_], missed_[place_], period_ns_);
      if (left_ > 0) {
        latency_ns_ = latencies_[place_++];
        return true;
      }
    }
    return false;
  }

  const std::int64_t* latencies_;
  const std::int64_t* missed_;
  std::size_t count_;
  std::int64_t period_ns_;
  std::size_t place_ = 0;
  std::int64_t latency_ns_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace latenz
