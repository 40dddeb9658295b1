// SPDX-License-Identifier: Apache-2.0
// Boards with a GICv3.
#pragma once

#include "boards/board.hpp"
#include "boards/virt.hpp"

namespace latenz::hypervisor {

inline constexpr Board known_boards[] = {
    virt_board(BoardNumber::virt_gicv3, "virt-gicv3",
               {.distributor = 0x0800'0000, .redistributors = 0x080A'0000}),
};

}  // namespace latenz::hypervisor
