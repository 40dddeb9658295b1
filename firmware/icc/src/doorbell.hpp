// SPDX-License-Identifier: Apache-2.0
// Inter-processor interrupts: one processor calls the other, whose handler notes when.
#pragma once

#include <cstdint>

#include "board.hpp"
#include "clocks.hpp"
#include "cpu.hpp"
#include "here.hpp"
#include "output.hpp"
#include "side.hpp"

namespace latenz::pair {

class Doorbell {
 public:
  /// Lets calls of the other side through from now on.
  static void open() {
    Here::hear_ringing();
    Interrupts::start(interrupt);
    firmware::Cpu::enable_interrupts();
  }

  /// Whether this side was called; told once.
  static bool was_rung() {
    const bool rung = rung_;
    rung_ = false;
    return rung;
  }

  static void forget() { rung_ = false; }

  /// Sleeps until this side was called since it last forgot, and forgets it.
  static void await() {
    while (!was_rung()) {
      firmware::Cpu::disable_interrupts();
      if (!rung_) firmware::Cpu::wait_for_interrupt();  // a call that is pending ends it at once
      firmware::Cpu::enable_interrupts();
    }
  }

  /// When the handler began.
  static std::uint32_t seen() { return seen_; }

  static void on_interrupt() {
    seen_ = Clocks::now();
    const auto acknowledged = Interrupts::acknowledge();
    if (Interrupts::spurious(acknowledged)) return;
    if (Interrupts::number(acknowledged) != interrupt) {
      firmware::fail("unexpected interrupt");
    }
    Here::end_ringing();
    rung_ = true;
    Interrupts::end(acknowledged);
  }

 private:
  using Interrupts = firmware::Board::Interrupts;
  /// Inter-processor interrupts (UG1085): of the Cortex-A53 and of the first Cortex-R5.
  static constexpr std::uint32_t interrupt = Side::first ? 67 : 65;

  static inline volatile bool rung_ = false;
  static inline volatile std::uint32_t seen_ = 0;
};

}  // namespace latenz::pair
