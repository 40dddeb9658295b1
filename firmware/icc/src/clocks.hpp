// SPDX-License-Identifier: Apache-2.0
// One time for both processors.
#pragma once

#include <cstdint>

namespace latenz::pair {

/// Differs between the emulated board and a real one: emulated/clocks.cpp, silicon/clocks.cpp.
struct Clocks {
  static const char* name();
  static std::uint32_t hz();

  /// Both sides at once.
  static void start();
  /// Of this side, in ticks; wraps.
  static std::uint32_t now();
  /// A time of the other side as this side's.
  static std::uint32_t own_time(std::uint32_t others);
  /// How far the two may be apart, in ticks.
  static std::uint32_t doubt();
};

}  // namespace latenz::pair
