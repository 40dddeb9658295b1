// SPDX-License-Identifier: Apache-2.0
// QEMU's machine `virt` with GICv2 (addresses: QEMU, hw/arm/virt.c).
#pragma once

#include "boards/board.hpp"

namespace latenz::hypervisor {

inline constexpr Range virt_not_for_guests[] = {
    {0x0800'0000, 0x0010'0000},  // GIC
    {0x0900'0000, 0x0000'1000},  // the console
    {0x0902'0000, 0x0000'1000},  // fw_cfg: DMA
    {0x0905'0000, 0x0002'0000},  // SMMU
    {0x0908'0000, 0x0000'2000},  // hot plugging
    {0x0A00'0000, 0x0000'4000},  // virtio: DMA
    {0x0C00'0000, 0x0300'0000},  // platform bus, secure memory
    {0x3F00'0000, 0x0100'0000},  // PCIe: configuration of masters
};

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
    .not_for_guests = virt_not_for_guests,
};

}  // namespace latenz::hypervisor
