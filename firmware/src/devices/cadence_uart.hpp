// SPDX-License-Identifier: Apache-2.0
// Cadence UART of the Zynq UltraScale+, transmitting. Speed and format stay as they are.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

template <std::uintptr_t base>
class CadenceUart {
 public:
  /// Bytes are lost until transmitter and receiver are enabled.
  static void start() { Control::write(transmit_enable | receive_enable); }

  static void put(char character) {
    while ((Status::read() & transmit_full) != 0) {
    }
    Fifo::write(static_cast<std::uint8_t>(character));
  }

 private:
  using Control = Register<base + 0x00>;
  using Status = Register<base + 0x2C>;
  using Fifo = Register<base + 0x30>;
  static constexpr std::uint32_t receive_enable = 1U << 2U;
  static constexpr std::uint32_t transmit_enable = 1U << 4U;
  static constexpr std::uint32_t transmit_full = 1U << 4U;
};

}  // namespace latenz::firmware
