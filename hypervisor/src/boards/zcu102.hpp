// SPDX-License-Identifier: Apache-2.0
// ZCU102 (Zynq UltraScale+), real or QEMU's xlnx-zcu102 (addresses: UG1085, UG1087). The GIC's
// 4 KiB pages repeat over 64 KiB each: its two-page frames begin at the last of the first sixteen.
#pragma once

#include "boards/board.hpp"

namespace latenz::hypervisor {

/// What is left are UART1, I2C, SPI, CAN and GPIO (0xFF01'0000 to 0xFF0A'FFFF), the timers TTC0 to
/// TTC3 (0xFF11'0000 to 0xFF14'FFFF), and what is in the logic.
inline constexpr Range zcu102_not_for_guests[] = {
    {0xF900'0000, 0x0010'0000},  // GIC with its aliases
    {0xFD00'0000, 0x0100'0000},  // XMPU, memory controller, CRF, FPD_SLCR, CCI, SMMU; DMA: SATA,
                                 // PCIe, DisplayPort, GPU, GDMA
    {0xFE00'0000, 0x0100'0000},  // USB: DMA; bus registers, CoreSight
    {0xFF00'0000, 0x0001'0000},  // the console
    {0xFF0B'0000, 0x0006'0000},  // GEM, QSPI, NAND: DMA
    {0xFF15'0000, 0x00EB'0000},  // watchdog, SD: DMA, IOU_SLCR, system counter, IPI, LPD_SLCR, CRL,
                                 // XPPU, RPU, ADMA, CSU, PMU, TCM, OCM
};

inline constexpr Board zcu102_board = {
    .number = BoardNumber::zcu102,
    .name = "zcu102",
    .gic = {.distributor = 0xF901'0000,
            .cpu_interface = 0xF902'F000,
            .virtual_control = 0xF904'0000,
            .virtual_interface = 0xF906'F000},
    .uart = 0xFF00'0000,
    .uart_kind = UartKind::cadence,
    .memory_begin = 0,
    .cpus = 4,
    .not_for_guests = zcu102_not_for_guests,
};

}  // namespace latenz::hypervisor
