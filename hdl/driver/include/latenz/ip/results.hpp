// SPDX-License-Identifier: Apache-2.0
// What the driver reads of one Latencies IP. Latencies and times are in cycles of the IP's clock.
#pragma once

#include <cstdint>

namespace latenz::ip {

struct Sample {
  std::uint64_t latency;  ///< cycles; Configuration::longest() stands for that or more
  std::uint64_t start;    ///< cycle of the interrupt; 0 without time stamps
};

/// Of a series, and of one moment.
struct Statistics {
  std::uint32_t num;   ///< samples; Configuration::largest_num() stands for that or more
  std::uint64_t last;  ///< 0 before the first sample
  std::uint64_t max;   ///< 0 before the first sample
  std::uint64_t min;   ///< all ones before the first sample
  constexpr bool operator==(const Statistics&) const = default;
};

/// Sums over a series, as of the last snapshot.
struct Sums {
  std::uint64_t sum;
  std::uint64_t squares_low;   ///< sum of squares, bits 63 to 0
  std::uint64_t squares_high;  ///< bits 127 to 64
};

/// Of a series; each stops at its maximum, 2^32 - 1.
struct Counters {
  std::uint32_t orphans;      ///< acknowledgements with nothing open
  std::uint32_t overlaps;     ///< interrupts while one was open
  std::uint32_t missed;       ///< interrupts that will get no sample
  std::uint32_t saturations;  ///< samples that stand for more than they say
};

/// What the frozen half of the memory holds: `count` samples in a ring of half the depth.
struct FrozenHalf {
  std::uint32_t half;     ///< 0 or 1: its first index in the memory is half * depth / 2
  std::uint32_t trigger;  ///< index within the half: the new maximum, or the alarm
  std::uint32_t end;      ///< index within the half, after the newest sample
  std::uint32_t count;    ///< valid samples
  constexpr bool operator==(const FrozenHalf&) const = default;
};

}  // namespace latenz::ip
