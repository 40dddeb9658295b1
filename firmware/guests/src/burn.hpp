// SPDX-License-Identifier: Apache-2.0
// Execution time to spend, in turns of a loop: what preempts the loop does not shorten it, as it
// would if the loop looked at a clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cpu.hpp"

namespace latenz::guests {

class Burn {
 public:
  /// Measures the loop: the quickest of some rounds, which nothing has preempted. Rounds are short,
  /// so that one of them finds a slot that is long enough.
  static void calibrate() {
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t begin = firmware::VirtualTimer::count();
      firmware::Cpu::pause(turns_of_round);
      // One tick more than seen: never longer than wanted, however coarse the counter is.
      ticks_of_round_ = std::min(ticks_of_round_, firmware::VirtualTimer::count() - begin + 1);
    }
  }

  /// Turns that take no longer than the given time.
  static std::uint32_t turns(std::uint64_t time_ns, std::uint64_t counter_hz) {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    constexpr std::uint64_t longest_ns = 10 * second_ns;  // so that no product overflows
    const std::uint64_t ticks = std::min(time_ns, longest_ns) * (counter_hz / 1000) / 1'000'000;
    return static_cast<std::uint32_t>(ticks * turns_of_round / ticks_of_round_);
  }

  static void spend(std::uint32_t turns) {
    if (turns != 0) firmware::Cpu::pause(turns);
  }

 private:
  static constexpr int rounds = 8;
  static constexpr std::uint32_t turns_of_round = 4096;
  static inline std::uint64_t ticks_of_round_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace latenz::guests
