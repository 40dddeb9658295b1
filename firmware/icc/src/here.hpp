// SPDX-License-Identifier: Apache-2.0
// What the board at hand can do.
#pragma once

#include "task.hpp"

namespace latenz::pair {

/// Differs between the emulated board and a real one: emulated/here.cpp, silicon/here.cpp.
struct Here {
  /// Places the exception vectors.
  static void prepare();

  static bool has(Memory memory);

  /// Whether this side can call the other one by an interrupt.
  static bool can_ring();
  /// Does so.
  static void ring();
  /// Whether the other side can call this one.
  static bool can_hear();
  /// Lets such calls reach this side's interrupt controller.
  static void hear_ringing();
  /// Takes a call back that has arrived.
  static void end_ringing();
};

}  // namespace latenz::pair
