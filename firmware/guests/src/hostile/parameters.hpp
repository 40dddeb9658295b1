// SPDX-License-Identifier: Apache-2.0
// Which attack. The host finds the block in the image by its magic, and changes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latenz::guests {

struct HostileParameters {
  std::array<char, 8> magic;  ///< "LATENZHA"
  std::uint64_t count;        ///< steps of random attacks
  std::uint64_t seed;         ///< of random numbers
  std::array<char, 40> name;  ///< of the attack, filled up with zeros
};
static_assert(sizeof(HostileParameters) == 64, "the tests know the layout");

const HostileParameters& parameters();

}  // namespace latenz::guests
