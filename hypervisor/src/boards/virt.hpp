// SPDX-License-Identifier: Apache-2.0
// QEMU's machine `virt`, with either interrupt controller (addresses: QEMU, hw/arm/virt.c).
#pragma once

#include "boards/board.hpp"

namespace latenz::hypervisor {

inline constexpr Range virt_not_for_guests[] = {
    {0x0800'0000, 0x0100'0000},  // GIC, with GICv3's redistributors
    {0x0900'0000, 0x0000'1000},  // the console
    {0x0902'0000, 0x0000'1000},  // fw_cfg: DMA
    {0x0905'0000, 0x0002'0000},  // SMMU
    {0x0908'0000, 0x0000'2000},  // hot plugging
    {0x0A00'0000, 0x0000'4000},  // virtio: DMA
    {0x0C00'0000, 0x0300'0000},  // platform bus, secure memory
    {0x3F00'0000, 0x0100'0000},  // PCIe: configuration of masters
};

constexpr Board virt_board(BoardNumber number, const char* name, const GicPlaces& gic) {
  return {
      .number = number,
      .name = name,
      .gic = gic,
      .uart = 0x0900'0000,
      .uart_kind = UartKind::pl011,
      .memory_begin = 0x4000'0000,
      .cpus = 8,
      .not_for_guests = virt_not_for_guests,
  };
}

}  // namespace latenz::hypervisor
