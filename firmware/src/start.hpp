// SPDX-License-Identifier: Apache-2.0
// Waiting for a start that somebody else has set.
#pragma once

#include <cstdint>

#include "board.hpp"
#include "cpu.hpp"
#include "latenz/text.hpp"
#include "output.hpp"

namespace latenz::firmware {

/// Sleeps until the start, where the board has a timer for that; returns whether it has.
/// A guest that is held meanwhile misses no event of the measured timer, which is not yet on.
template <typename AnyBoard>
bool sleep_before_start(std::uint64_t start_after_ns) {
  if constexpr (requires { typename AnyBoard::Sleep; }) {
    if (start_after_ns == 0) return false;
    using Sleep = AnyBoard::Sleep;
    using Interrupts = AnyBoard::Interrupts;
    Text<64> told;  // lets others tell what was before the start by their own counter
    told.add("counter_behind_ns=").add(Sleep::behind_ns());
    output().text(FrameKind::note, told.view());
    Interrupts::start(Sleep::interrupt);
    Sleep::until(start_after_ns);
    auto acknowledged = Interrupts::acknowledge();
    while (Interrupts::spurious(acknowledged)) {
      Cpu::wait_for_interrupt();  // wakes up although interrupts are masked
      acknowledged = Interrupts::acknowledge();
    }
    Sleep::stop();
    Interrupts::end(acknowledged);
    return true;
  }
  return false;
}

}  // namespace latenz::firmware
