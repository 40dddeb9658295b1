// SPDX-License-Identifier: Apache-2.0
// What is counted of one source. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "latenz/handling.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// At any time raised = completed + pending + dropped, and raised is the sum of by_handling.
struct SourceStatistics {
  std::uint64_t raised = 0;
  std::uint64_t completed = 0;
  std::array<std::uint64_t, 3> by_handling{};  ///< of those raised, see Handling
  std::uint64_t asked = 0;                     ///< times that the monitor was
  std::uint64_t denied = 0;                    ///< by the monitor, in any slot
  std::uint64_t jobs = 0;                      ///< interposed jobs that have started
  std::uint64_t overruns =
      0;  ///< of them, those that were cut off in the middle of a bottom handler
  std::uint64_t overflowed = 0;  ///< IRQs that found the queue full and waited outside
  std::uint64_t outside = 0;     ///< of them, those that wait there now
  std::uint64_t dropped = 0;     ///< because the partition was stopped
  std::uint64_t masked = 0;      ///< times that it exceeded its limit; not counted as raised
  std::uint64_t untimed = 0;  ///< completed, but not in the latencies: their arrivals were not kept

  /// Of completed IRQs, from the arrival to the end of the bottom handler.
  Duration least_latency;
  Duration most_latency;
  Duration all_latencies;

  void begin() {
    *this = {};
    least_latency = Duration::unbounded();
  }

  [[nodiscard]] std::uint64_t pending() const { return raised - completed - dropped; }

  void count_raised(Handling handling) {
    ++raised;
    ++by_handling[static_cast<std::size_t>(handling)];
  }

  void count_completed(Duration latency) {
    ++completed;
    least_latency = std::min(least_latency, latency);
    most_latency = std::max(most_latency, latency);
    all_latencies += latency;
  }

  void count_untimed() {
    ++completed;
    ++untimed;
  }
};

}  // namespace latenz::hypervisor
