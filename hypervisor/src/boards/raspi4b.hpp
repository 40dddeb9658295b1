// SPDX-License-Identifier: Apache-2.0
// Raspberry Pi 4 with 2 GiB or more (BCM2711 ARM Peripherals, and QEMU's hw/arm/bcm2838.c). Its
// firmware has no PSCI: cores wait in a spin table, and the watchdog switches off.
#pragma once

#include "boards/board.hpp"

namespace latenz::hypervisor {

/// What is left are the system timer, GPIO, PCM, SPI, I2C, PWM and the mini UART, all without
/// masters of their own.
inline constexpr Range raspi4b_not_for_guests[] = {
    {0x0000'0000, 0x4000'0000},      // firmware, its spin table, VideoCore's memory
    {0xFC00'0000, 0x0200'3000},      // PCIe, Ethernet: DMA
    {0xFE00'4000, 0x001F'C000},      // DMA, mailboxes of VideoCore, power, watchdog, clocks
    {0xFE20'1000, 0x0000'2000},      // the console, with the UARTs in its page; SD host
    {0xFE20'6000, 0x0000'6000},      // pixel valves, DPI, DSI
    {0xFE20'D000, 0x0000'8000},      // DSI, others
    {0xFE21'6000, 0x005E'E000},      // SD: DMA; CSI
    {0xFE80'5000, 0x017F'B000},      // USB, display, GPU, codecs: DMA; GIC
    {0x4'0000'0000, 0xC'0000'0000},  // the same ones again, and what is behind PCIe
};

inline constexpr Board raspi4b_board = {
    .number = BoardNumber::raspi4b,
    .name = "raspi4b",
    .gic = {.distributor = 0xFF84'1000,
            .cpu_interface = 0xFF84'2000,
            .virtual_control = 0xFF84'4000,
            .virtual_interface = 0xFF84'6000},
    .uart = 0xFE20'1000,
    .uart_kind = UartKind::pl011,
    .uart_divisor = 48'000'000 * 4 / 115'200,  // the firmware's clock, in 64ths of 16 samples
    .memory_begin = 0,
    .cpus = 4,
    .not_for_guests = raspi4b_not_for_guests,
    .spin_table = 0xD8,
    .power_manager = 0xFE10'0000,
};

}  // namespace latenz::hypervisor
