// SPDX-License-Identifier: Apache-2.0
// Vectors of minimum distances for tests: every small one, and random ones of any length and size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "latenz/time.hpp"

using Distances = std::vector<latenz::Duration>;

/// Every vector of this length whose entries do not decrease and are at most `most`.
inline std::vector<Distances> every_vector(std::size_t length, std::int64_t most) {
  std::vector<Distances> vectors = {{}};
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<Distances> longer;
    for (const Distances& vector : vectors) {
      for (auto next = vector.empty() ? 0 : vector.back().ns(); next <= most; ++next) {
        longer.push_back(vector);
        longer.back().emplace_back(next);
      }
    }
    vectors = longer;
  }
  return vectors;
}

/// A vector of this length whose entries grow by up to `most_step` each.
inline Distances random_vector(std::mt19937_64& random, std::size_t length,
                               std::uint64_t most_step) {
  Distances vector;
  latenz::Duration distance;
  for (std::size_t i = 0; i < length; ++i) {
    distance += latenz::Duration(static_cast<std::int64_t>(random() % (most_step + 1)));
    vector.push_back(distance);
  }
  return vector;
}
