// SPDX-License-Identifier: Apache-2.0
// Arm PL011 UART, transmitting. Speed and format stay as whoever started us set them.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

template <std::uintptr_t base>
class Pl011 {
 public:
  static void start() { Control::set(uart_enable | transmit_enable); }

  static void put(char character) {
    while ((Flags::read() & transmit_full) != 0) {
    }
    Data::write(static_cast<std::uint8_t>(character));
  }

 private:
  using Data = Register<base + 0x00>;
  using Flags = Register<base + 0x18>;
  using Control = Register<base + 0x30>;
  static constexpr std::uint32_t transmit_full = 1U << 5U;
  static constexpr std::uint32_t uart_enable = 1U << 0U;
  static constexpr std::uint32_t transmit_enable = 1U << 8U;
};

}  // namespace latenz::firmware
