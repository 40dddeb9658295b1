// SPDX-License-Identifier: Apache-2.0
// Unsigned 256-bit sums: exact totals and sums of squares of 64-bit latencies, for any sample count.
// Freestanding. Overflow is impossible in its uses here: 2^64 samples of (2^64)^2 stay below 2^192.
#pragma once

#include <cstdint>

namespace latenz {

/// Unsigned integer of four 64-bit limbs, least significant first.
struct WideInteger {
  std::uint64_t limb[4] = {0, 0, 0, 0};

  constexpr WideInteger() = default;
  constexpr explicit WideInteger(std::uint64_t value) : limb{value, 0, 0, 0} {}

  constexpr WideInteger& operator+=(const WideInteger& other) {
    std::uint64_t carry = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t partial = limb[i] + other.limb[i];
      const std::uint64_t carry_out = partial < limb[i] ? 1U : 0U;
      limb[i] = partial + carry;
      carry = carry_out + (limb[i] < partial ? 1U : 0U);
    }
    return *this;
  }

  constexpr bool operator==(const WideInteger&) const = default;
};

}  // namespace latenz
