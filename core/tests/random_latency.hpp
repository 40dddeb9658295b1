// SPDX-License-Identifier: Apache-2.0
// Latencies of every order of magnitude and both signs, for random tests.
#pragma once

#include <cstdint>
#include <random>

inline std::int64_t random_latency(std::mt19937_64& random) {
  const auto size = static_cast<std::int64_t>(random() >> (random() % 64));
  return random() % 2 == 0 ? size : -1 - size;
}
