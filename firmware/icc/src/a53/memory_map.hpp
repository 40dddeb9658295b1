// SPDX-License-Identifier: Apache-2.0
// Translation of a Cortex-A53 at EL1: every address is itself; DDR is cached but for what is
// shared.
#pragma once

namespace latenz::pair {

struct MemoryMap {
  /// Does nothing if it is enabled, as after a restart of the program.
  static void enable();

  /// On another core, with the first one's tables.
  static void share();
};

}  // namespace latenz::pair
