// SPDX-License-Identifier: Apache-2.0
// What Linux and a real-time core say to each other in the echo example: numbers, and a check of
// them. linux_echo.cpp is one side; the other is firmware/src/remote/echo.cpp, or linux_echo again.
#pragma once

#include "latenz/icc.hpp"

namespace echo {

/// With the word of its exchange it takes two lines.
struct Message {
  std::uint64_t number;
  std::uint32_t checksum;
  std::uint8_t fill[98];

  [[nodiscard]] static Message make(std::uint64_t number) noexcept {
    Message message{.number = number, .checksum = 0, .fill = {}};
    auto value = static_cast<std::uint32_t>(number);
    for (std::uint8_t& byte : message.fill) {
      value = value * 1664525U + 1013904223U;
      byte = static_cast<std::uint8_t>(value >> 24U);
    }
    message.checksum = message.sum();
    return message;
  }

  [[nodiscard]] bool is_whole() const noexcept { return checksum == sum(); }

  [[nodiscard]] std::uint32_t sum() const noexcept {
    std::uint32_t hash = static_cast<std::uint32_t>(number) ^ 2166136261U;
    for (const std::uint8_t byte : fill) {
      hash = (hash ^ byte) * 16777619U;
    }
    return hash;
  }
};

/// The answer to a message: the next number, so that nobody takes his own message for a reply; 0 to
/// one that came damaged.
[[nodiscard]] inline Message answer(const Message& request) noexcept {
  return Message::make(request.is_whole() ? request.number + 1 : 0);
}

template <class Platform>
using Channel = latenz::icc::Exchange<Message, Message, Platform>;

/// Memory of a Zynq UltraScale+ that Linux leaves alone: on-chip memory behind the resident loader,
/// and the reserved DDR behind the real-time core's program.
inline constexpr std::uintptr_t zynqmp_places[] = {0xFFFD'0000, 0x7040'0000};

}  // namespace echo
