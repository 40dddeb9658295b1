// SPDX-License-Identifier: Apache-2.0
// Boards with a GICv2.
#pragma once

#include "boards/board.hpp"
#include "boards/raspi4b.hpp"
#include "boards/virt.hpp"
#include "boards/zcu102.hpp"

namespace latenz::hypervisor {

inline constexpr Board known_boards[] = {
    virt_board(BoardNumber::virt, "virt",
               {.distributor = 0x0800'0000,
                .cpu_interface = 0x0801'0000,
                .virtual_control = 0x0803'0000,
                .virtual_interface = 0x0804'0000}),
    zcu102_board,
    raspi4b_board,
};

}  // namespace latenz::hypervisor
