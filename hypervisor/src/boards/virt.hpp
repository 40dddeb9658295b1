// SPDX-License-Identifier: Apache-2.0
// QEMU's machine `virt` with GICv2 (addresses: QEMU, hw/arm/virt.c).
#pragma once

#include "boards/board.hpp"

namespace latenz::hypervisor {

inline constexpr Board virt_board = {
    .name = "virt",
    .distributor = 0x0800'0000,
    .cpu_interface = 0x0801'0000,
    .virtual_control = 0x0803'0000,
    .virtual_interface = 0x0804'0000,
    .uart = 0x0900'0000,
    .uart_kind = UartKind::pl011,
    .memory_begin = 0x4000'0000,
    .cpus = 8,
};

}  // namespace latenz::hypervisor
