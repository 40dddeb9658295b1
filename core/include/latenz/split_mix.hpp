// SPDX-License-Identifier: Apache-2.0
// A generator of random numbers that is the same on every machine and in every program of ours.
// Freestanding.
#pragma once

#include <cstdint>

namespace latenz {

/// splitmix64 (Steele, Lea, Flood 2014): passes BigCrush, one multiplication chain a number.
class SplitMix64 {
 public:
  constexpr explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9E37'79B9'7F4A'7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58'476D'1CE4'E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D0'49BB'1331'11EBU;
    return mixed ^ (mixed >> 31U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace latenz
