// SPDX-License-Identifier: Apache-2.0
// A message that shows whether it is whole, and which one it is.
#pragma once

#include <cstdint>

namespace latenz::pair {

struct Letter {
  std::uint32_t number;
  std::uint32_t last;  ///< 1: nothing follows
  std::uint32_t words[13];
  std::uint32_t sum;

  /// A letter whose words are all made of its number and a seed.
  static Letter of(std::uint32_t number, std::uint32_t seed) {
    Letter made{};
    made.number = number;
    std::uint32_t word = number ^ seed;
    for (std::uint32_t& each : made.words) {
      word = (word * 1'664'525) + 1'013'904'223;  // Numerical Recipes, 7.1
      each = word;
    }
    made.sum = made.expected_sum();
    return made;
  }

  /// Whether all words belong together: a sum in which their places count.
  [[nodiscard]] bool whole() const { return sum == expected_sum(); }

  [[nodiscard]] std::uint32_t expected_sum() const {
    std::uint32_t total = (number * 31) + last;
    for (const std::uint32_t each : words) total = (total * 31) + each;
    return total;
  }

  friend bool operator==(const Letter&, const Letter&) = default;
};

}  // namespace latenz::pair
