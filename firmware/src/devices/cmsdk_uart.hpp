// SPDX-License-Identifier: Apache-2.0
// UART of Arm's Cortex-M System Design Kit (CMSDK), transmitting.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

/// `divider`: clock of the UART over its speed, at least 16
template <std::uintptr_t base, std::uint32_t divider>
class CmsdkUart {
 public:
  static void start() {
    static_assert(divider >= 16, "the UART does not run faster than a sixteenth of its clock");
    Divider::write(divider);
    Control::write(transmit_enable);
  }

  static void put(char character) {
    while ((State::read() & transmit_full) != 0) {
    }
    Data::write(static_cast<std::uint8_t>(character));
  }

 private:
  using Data = Register<base + 0x00>;
  using State = Register<base + 0x04>;
  using Control = Register<base + 0x08>;
  using Divider = Register<base + 0x10>;
  static constexpr std::uint32_t transmit_full = 1U << 0U;
  static constexpr std::uint32_t transmit_enable = 1U << 0U;
};

}  // namespace latenz::firmware
