// SPDX-License-Identifier: Apache-2.0
// The board's UART, shared: whole lines of partitions and of the hypervisor go into a ring, from
// which only as many characters are sent at a time as the UART takes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "boards/board.hpp"

namespace latenz::hypervisor {

class Console {
 public:
  static constexpr std::size_t longest_line = 200;

  static void start(const Board& board);

  /// Whether a line of any length has room.
  static bool has_room();

  /// Adds `prefix`, `line` and a line end; without room the line is dropped and counted.
  static void add(std::string_view prefix, std::string_view line);

  /// Sends what the UART takes at once, at most as much as its queue holds.
  static void pump();

  /// Sends all; only when nothing has to be in time any more.
  static void drain();

  /// Sends a line at once, behind all that waits.
  static void print(std::string_view line);

 private:
  static bool put(char character);
};

}  // namespace latenz::hypervisor
