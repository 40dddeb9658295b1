// SPDX-License-Identifier: Apache-2.0
// How far a partition gets in its slots tells what others take from it.
#pragma once

#include <cstdint>

#include "guest.hpp"

namespace latenz::guests {

/// Counts without end, three instructions a turn; the count is the partition's progress.
[[noreturn]] inline void count() {
  volatile std::uint64_t& progress = report().progress;
  std::uint64_t turns = 0;
  while (true) {
    asm volatile(
        "1: add %0, %0, #1\n"
        " str %0, [%1]\n"
        " b 1b"
        : "+r"(turns)
        : "r"(&progress)
        : "memory");
  }
}

}  // namespace latenz::guests
