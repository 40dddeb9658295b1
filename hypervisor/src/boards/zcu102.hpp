// SPDX-License-Identifier: Apache-2.0
// ZCU102 (Zynq UltraScale+), real or QEMU's xlnx-zcu102 (addresses: UG1085, UG1087). The GIC's
// 4 KiB pages repeat over 64 KiB each: its two-page frames begin at the last of the first sixteen.
#pragma once

#include "boards/board.hpp"

namespace latenz::hypervisor {

inline constexpr Board zcu102_board = {
    .name = "zcu102",
    .distributor = 0xF901'0000,
    .cpu_interface = 0xF902'F000,
    .virtual_control = 0xF904'0000,
    .virtual_interface = 0xF906'F000,
    .uart = 0xFF00'0000,
    .uart_kind = UartKind::cadence,
    .memory_begin = 0,
    .cpus = 4,
};

}  // namespace latenz::hypervisor
