// SPDX-License-Identifier: Apache-2.0
// Vectors of minimum distances: entry i is delta-minus(i + 2), the least time between the first
// and the last of any i + 2 consecutive events. Freestanding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "latenz/time.hpp"

namespace latenz {

/// Longest vector of minimum distances that monitors, learners and event models take.
inline constexpr std::size_t longest_distance_vector = 64;

/// Raises every entry to what the shorter ones imply: q events span at least what any two parts of
/// them, sharing one event, span together. The closed vector allows exactly the same streams.
constexpr void close_super_additively(std::span<Duration> distances) {
  for (std::size_t whole = 1; whole < distances.size(); ++whole) {
    for (std::size_t part = 0; part < whole; ++part) {
      distances[whole] = std::max(distances[whole], distances[part] + distances[whole - part - 1]);
    }
  }
}

/// Algorithm 2 of beckert2014: no learned distance may stay below the one that is allowed.
/// Both vectors have the same length.
constexpr void raise_to(std::span<Duration> learned, std::span<const Duration> allowed) {
  for (std::size_t i = 0; i < learned.size() && i < allowed.size(); ++i) {
    learned[i] = std::max(learned[i], allowed[i]);
  }
}

}  // namespace latenz
