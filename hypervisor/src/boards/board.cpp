// SPDX-License-Identifier: Apache-2.0
#include "boards/board.hpp"

#include "boards/virt.hpp"
#include "boards/zcu102.hpp"

namespace latenz::hypervisor {
namespace {

const Board* chosen = nullptr;

}  // namespace

bool choose_board(BoardNumber number) {
  if (number == BoardNumber::virt) chosen = &virt_board;
  if (number == BoardNumber::zcu102) chosen = &zcu102_board;
  return chosen != nullptr;
}

const Board& board() { return *chosen; }

}  // namespace latenz::hypervisor
