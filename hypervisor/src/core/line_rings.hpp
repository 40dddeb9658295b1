// SPDX-License-Identifier: Apache-2.0
// Lines on their way to a console: a ring for each producer, one consumer for all. Nobody waits for
// anybody. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latenz::hypervisor {

/// @tparam rings     how many; of each, one thread at a time adds
/// @tparam capacity  characters that a ring holds, a power of two
template <std::size_t rings, std::size_t capacity>
class LineRings {
 public:
  static constexpr std::size_t longest_line = 200;
  static_assert((capacity & (capacity - 1)) == 0 && capacity > longest_line);

  /// Whether a line of any length has room. By the ring's producer.
  [[nodiscard]] bool has_room(std::size_t ring) const {
    const Ring& own = ring_[ring];
    const std::uint32_t waiting =
        own.added.load(std::memory_order_relaxed) - own.sent.load(std::memory_order_acquire);
    return capacity - waiting >= longest_line;
  }

  /// Adds `prefix`, `line`, cut where both are too long, and a line end: all of it or nothing. What
  /// has no room is counted. By the ring's producer.
  void add(std::size_t ring, std::string_view prefix, std::string_view line) {
    Ring& own = ring_[ring];
    if (!has_room(ring)) {
      own.lost.store(own.lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    std::uint32_t end = own.added.load(std::memory_order_relaxed);
    end = copy(own, end, prefix.substr(0, longest_line - 1));
    end = copy(own, end,
               line.substr(0, longest_line - 1 - std::min(prefix.size(), longest_line - 1)));
    own.text[end++ % capacity] = '\n';
    own.added.store(end, std::memory_order_release);
  }

  /// Lines that had no room. By anybody.
  [[nodiscard]] std::uint32_t lost(std::size_t ring) const {
    return ring_[ring].lost.load(std::memory_order_relaxed);
  }

  /// Hands at most so many characters to `put`, until that returns false; lines stay whole. By the
  /// consumer.
  template <typename Put>
  void send(unsigned most, Put put) {
    for (; most > 0 && find(); --most) {
      Ring& from = ring_[current_];
      const std::uint32_t at = from.sent.load(std::memory_order_relaxed);
      const char character = from.text[at % capacity];
      if (!put(character)) return;
      from.sent.store(at + 1, std::memory_order_release);
      if (character == '\n') current_ = (current_ + 1) % rings;
    }
  }

  /// Whether nothing waits. By anybody.
  [[nodiscard]] bool empty() const {
    return std::none_of(ring_.begin(), ring_.end(), [](const Ring& each) { return each.waits(); });
  }

 private:
  struct Ring {
    std::atomic<std::uint32_t> added;  ///< characters, modulo 2^32; by the producer
    std::atomic<std::uint32_t> lost;   ///< by the producer
    std::atomic<std::uint32_t> sent;   ///< by the consumer
    std::array<char, capacity> text;

    [[nodiscard]] bool waits() const {
      return added.load(std::memory_order_acquire) != sent.load(std::memory_order_relaxed);
    }
  };

  static std::uint32_t copy(Ring& to, std::uint32_t at, std::string_view text) {
    for (const char character : text) to.text[at++ % capacity] = character;
    return at;
  }

  /// Goes on to a ring in which something waits; only between lines, as lines are added whole.
  bool find() {
    for (std::size_t i = 0; i < rings; ++i) {
      if (ring_[current_].waits()) return true;
      current_ = (current_ + 1) % rings;
    }
    return false;
  }

  std::array<Ring, rings> ring_{};
  std::size_t current_ = 0;
};

}  // namespace latenz::hypervisor
