// SPDX-License-Identifier: Apache-2.0
// What `latenz icc try` gives your two programs on the emulated ZCU102: the first Cortex-A53 and
// the first Cortex-R5, no operating system, caches on. Each program has an `int main()`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "latenz/icc/platform.hpp"
#include "latenz/text.hpp"

namespace latenz::board {

/// On-chip memory that both map as Normal, not cacheable, at one address. Below it lie what starts
/// the Cortex-R5 and its control block, above it what starts the board.
inline void* const shared_memory = reinterpret_cast<void*>(0xFFFD'0000);
inline constexpr std::size_t shared_bytes = 0xF000;

/// What channels there run on. Waiting cores give way, since emulated ones run in turn.
using Platform = icc::Platform<icc::NonCacheable, icc::ArmSystemOrder, icc::Pause>;

/// Virtual time of this processor: 1 ns for each instruction of any. For `icc::Until`.
struct Clock {
  static std::int64_t now_ns();
};

/// Says a line, which `latenz icc try` prints behind the processor's name.
void print(std::string_view line);

using Line = Text<200>;
inline void print(const Line& line) { print(line.view()); }

}  // namespace latenz::board
