// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of channels send, and how they wait and read the clock.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>

#include "latenz/icc/wait.hpp"

namespace latenz::bench {

template <std::size_t size>
struct Message {
  std::uint32_t words[size / 4];
};

inline void pause() { icc::Pause::pause(); }

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace latenz::bench
