// SPDX-License-Identifier: Apache-2.0
// A bounded queue from one real-time thread to one that may be slow. Wait-free on both sides, no
// memory is taken after construction, and a full ring refuses instead of overwriting.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace latenz::probe {

inline constexpr std::size_t cache_line = 64;  ///< on x86-64 and AArch64

template <typename Record>
class Ring {
  static_assert(std::is_trivially_copyable_v<Record>,
                "records are copied while the other side runs");

 public:
  /// Holds at least `capacity` records (rounded up to a power of two); every page of it is
  /// written once here, so that pushing never faults.
  explicit Ring(std::size_t capacity)
      : records_(std::bit_ceil(capacity)), mask_(records_.size() - 1) {}

  [[nodiscard]] std::size_t capacity() const { return records_.size(); }

  /// Producer only: appends a record; false if the ring is full.
  [[nodiscard]] bool push(const Record& record) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_seen_ == records_.size()) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head - tail_seen_ == records_.size()) {
        return false;
      }
    }
    records_[head & mask_] = record;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  /// Consumer only: moves up to `out.size()` records, oldest first; returns how many.
  [[nodiscard]] std::size_t pop(std::span<Record> out) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    const std::size_t filled = head_.load(std::memory_order_acquire) - tail;
    const std::size_t count = std::min(filled, out.size());
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = records_[(tail + i) & mask_];
    }
    tail_.store(tail + count, std::memory_order_release);
    return count;
  }

 private:
  std::vector<Record> records_;
  std::size_t mask_;
  // Each side's counter has a cache line of its own: the consumer's store must not slow the
  // producer.
  alignas(cache_line) std::atomic<std::size_t> head_{0};  ///< written by the producer
  std::size_t tail_seen_{0};                              ///< the producer's copy of tail_
  alignas(cache_line) std::atomic<std::size_t> tail_{0};  ///< written by the consumer
};

}  // namespace latenz::probe
