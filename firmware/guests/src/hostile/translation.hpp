// SPDX-License-Identifier: Apache-2.0
// The guest's own translation (stage 1): every address is itself, in blocks of 1 GiB. Registers:
// Arm Architecture Reference Manual, D5 and D17.
#pragma once

#include <cstdint>

namespace latenz::guests {

class Translation {
 public:
  static void enable();
  static void disable();

  /// Lets the processor look for an upper address in tables at `tables`.
  static void walk(std::uint64_t tables);

  /// The same for its own instructions.
  static void move_to(std::uint64_t tables);
};

}  // namespace latenz::guests
