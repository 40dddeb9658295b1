// SPDX-License-Identifier: Apache-2.0
// Arm PL011 UART, transmitting, and the generic UART of SBSA, which has only its first registers.
// Speed and format stay as whoever started us set them.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

/// What Xen emulates for its guests: always on.
template <std::uintptr_t base>
class SbsaUart {
 public:
  static void start() {}

  static void put(char character) {
    while ((Flags::read() & transmit_full) != 0) {
    }
    Data::write(static_cast<std::uint8_t>(character));
  }

 private:
  using Data = Register<base + 0x00>;
  using Flags = Register<base + 0x18>;
  static constexpr std::uint32_t transmit_full = 1U << 5U;
};

template <std::uintptr_t base>
class Pl011 : public SbsaUart<base> {
 public:
  static void start() { Control::set(uart_enable | transmit_enable); }

 private:
  using Control = Register<base + 0x30>;
  static constexpr std::uint32_t uart_enable = 1U << 0U;
  static constexpr std::uint32_t transmit_enable = 1U << 8U;
};

}  // namespace latenz::firmware
