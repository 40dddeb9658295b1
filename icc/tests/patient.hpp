// SPDX-License-Identifier: Apache-2.0
// How threads wait for each other in tests: the machine may hold up one of them for seconds.
#pragma once

#include <cstdint>

#include "latenz/icc/wait.hpp"

namespace latenz::icc::tests {

/// Never takes a silent peer for gone.
struct Patient : Yield {
  static constexpr std::uint32_t silent_beats = 0xFFFF'FFFF;
};

}  // namespace latenz::icc::tests
