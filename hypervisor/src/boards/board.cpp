// SPDX-License-Identifier: Apache-2.0
#include "boards/board.hpp"

#include "known_boards.hpp"

namespace latenz::hypervisor {
namespace {

const Board* chosen = nullptr;

}  // namespace

bool choose_board(BoardNumber number) {
  for (const Board& each : known_boards) {
    if (each.number == number) chosen = &each;
  }
  return chosen != nullptr;
}

const Board& board() { return *chosen; }

}  // namespace latenz::hypervisor
