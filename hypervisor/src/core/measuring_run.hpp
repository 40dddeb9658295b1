// SPDX-License-Identifier: Apache-2.0
// What is measured of a shared CPU, from the first cycle that counts to the last. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "configuration.hpp"
#include "dispatcher_plan.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

class MeasuringRun {
 public:
  void begin(Instant epoch) {
    epoch_ = epoch;
    latest_slot_ = Duration();
    cycles_ = 0;
    measuring_ = true;
  }

  /// Nothing is counted any more.
  void end() {
    measuring_ = false;
    is_over_ = true;
  }

  void count_cycle() { ++cycles_; }
  void note_slot(Duration lateness) {
    if (!is_over_) latest_slot_ = std::max(latest_slot_, lateness);
  }
  void note_queue(PartitionIndex partition, std::uint64_t size) {
    longest_queue_[partition] = std::max(longest_queue_[partition], size);
  }

  /// Asked once a cycle. A guest may never end a bottom handler: when none has ended for long,
  /// nobody waits any more.
  bool is_stuck(const auto& dispatcher) {
    constexpr std::uint64_t most_cycles_without_end = 100;
    std::uint64_t completed = 0;
    const auto sources = static_cast<std::uint16_t>(dispatcher.sources());
    for (std::uint16_t i = 0; i < sources; ++i) {
      completed += dispatcher.has(i) ? dispatcher.statistics(i).completed : 0;
    }
    stuck_cycles_ = completed == completed_ ? stuck_cycles_ + 1 : 0;
    completed_ = completed;
    return stuck_cycles_ >= most_cycles_without_end;
  }

  /// Otherwise partitions are still awaited, or it is over.
  [[nodiscard]] bool measuring() const { return measuring_; }
  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] Instant epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }
  [[nodiscard]] Duration latest_slot() const { return latest_slot_; }
  [[nodiscard]] std::uint64_t longest_queue(PartitionIndex index) const {
    return longest_queue_[index];
  }

 private:
  Instant epoch_;
  std::uint64_t cycles_ = 0;
  std::uint64_t completed_ = 0;  ///< bottom handlers, when the cycle before ended
  std::uint64_t stuck_cycles_ = 0;
  Duration latest_slot_;  ///< from its start to the hypervisor's first instruction for it
  bool measuring_ = false;
  bool is_over_ = false;
  std::array<std::uint64_t, Configuration::most_partitions> longest_queue_{};
};

}  // namespace latenz::hypervisor
