// SPDX-License-Identifier: Apache-2.0
// Times between events, in ticks: equal, or exponentially distributed from a seed. Integers only;
// docs/firmware.md describes the generator, so that anybody can repeat it.
#pragma once

#include <bit>
#include <cstdint>

#include "latenz/split_mix.hpp"

namespace latenz::firmware {

/// log2 of m / 2^31 for 2^31 <= m < 2^32, in units of 2^-24: a bit for each squaring.
constexpr std::uint32_t fraction_of_log2(std::uint32_t m) {
  std::uint32_t fraction = 0;
  for (int bit = 0; bit < 24; ++bit) {
    std::uint64_t square = (std::uint64_t{m} * m) >> 31U;
    const bool carries = square >> 32U != 0;
    if (carries) square >>= 1U;
    fraction = (fraction << 1U) | (carries ? 1U : 0U);
    m = static_cast<std::uint32_t>(square);
  }
  return fraction;
}

/// -ln(number / 2^64) in units of 2^-24, for number > 0.
constexpr std::uint64_t minus_log(std::uint64_t number) {
  constexpr std::uint64_t ln2 = 2'977'044'472;  // in units of 2^-32
  const int leading = std::countl_zero(number);
  const auto top = static_cast<std::uint32_t>((number << static_cast<unsigned>(leading)) >> 32U);
  const auto halvings = static_cast<std::uint64_t>(leading) + 1;
  const std::uint64_t minus_log2 = (halvings << 24U) - fraction_of_log2(top);
  return (minus_log2 * ln2) >> 32U;
}

/// Exponentially distributed gaps of a mean below 2^32 ticks, but none shorter than the minimum.
class ExponentialGaps {
 public:
  constexpr ExponentialGaps(std::uint64_t mean, std::uint64_t minimum, std::uint64_t seed)
      : random_(seed), mean_(mean), minimum_(minimum) {}

  constexpr std::uint64_t next() {
    const std::uint64_t gap = (minus_log(random_.next() | 1U) * mean_) >> 24U;
    return gap < minimum_ ? minimum_ : gap;
  }

 private:
  SplitMix64 random_;
  std::uint64_t mean_;
  std::uint64_t minimum_;
};

}  // namespace latenz::firmware
