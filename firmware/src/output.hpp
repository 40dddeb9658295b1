// SPDX-License-Identifier: Apache-2.0
// All that the program says goes through here, in frames on the board's console.
#pragma once

#include <string_view>

#include "board.hpp"
#include "latenz/frame_sender.hpp"
#include "parameters.hpp"

namespace latenz::firmware {

inline void print_line(std::string_view line) {
  for (const char character : line) Board::Console::put(character);
  Board::Console::put('\n');
}

using Output = FrameSender<void (*)(std::string_view)>;

/// Started at its first use, with the sender number of the parameters, right or wrong.
inline Output& output() {
  static Output sender = [] {
    Board::Console::start();
    return Output(print_line, static_cast<std::uint8_t>(parameters().sender));
  }();
  return sender;
}

/// Says why, and ends everything.
[[noreturn]] void fail(std::string_view reason);

/// Switches the machine off, or waits for ever where that cannot be.
[[noreturn]] void finish();

}  // namespace latenz::firmware
