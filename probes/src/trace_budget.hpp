// SPDX-License-Identifier: Apache-2.0
// What reading one file may cost. A file of a megabyte that was made to do harm takes neither
// gigabytes nor minutes; what kernels record stays far below each limit.
#pragma once

#include <cstdint>

#include "trace_source.hpp"

namespace latenz::trace {

/// One for all parts and streams of a file.
class Budget {
 public:
  explicit Budget(std::uint64_t file_size)
      : events_left_(base_events + events_a_byte * file_size),
        bytes_left_(base_bytes + bytes_a_byte * file_size) {}

  /// Before a part is restored, or read again; throws `Damage` at `place` if it is too much.
  void unpack(std::uint64_t bytes, std::uint64_t place) {
    if (bytes > bytes_left_) throw Damage(place, "it unpacks to far more than a trace does");
    bytes_left_ -= bytes;
  }

  /// Before bytes are kept for longer than one event; throws `Damage` as `unpack` does.
  void hold(std::uint64_t bytes, std::uint64_t place) {
    if (bytes > held_left_) throw Damage(place, "its CPUs need too much memory at once");
    held_left_ -= bytes;
  }
  void release(std::uint64_t bytes) { held_left_ += bytes; }

  /// May one more event be delivered?
  [[nodiscard]] bool take_event() {
    if (events_left_ == 0) return false;
    --events_left_;
    return true;
  }

 private:
  // A monotonous recording takes 1.2 bytes an event in the file, and unpacks to 26 times its size.
  static constexpr std::uint64_t base_events = 1U << 20U;
  static constexpr std::uint64_t events_a_byte = 4;
  static constexpr std::uint64_t base_bytes = 1U << 26U;
  static constexpr std::uint64_t bytes_a_byte = 64;
  static constexpr std::uint64_t most_held = 1U << 30U;

  std::uint64_t events_left_;
  std::uint64_t bytes_left_;
  std::uint64_t held_left_ = most_held;
};

}  // namespace latenz::trace
