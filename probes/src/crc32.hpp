// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zlib, gzip and Ethernet use it (reflected polynomial 0xEDB88320).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace latenz::probe {

inline constexpr auto crc32_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    table[byte] = value;
  }
  return table;
}();

[[nodiscard]] constexpr std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const std::byte byte : bytes) {
    value = (value >> 8U) ^ crc32_table[(value ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
  }
  return ~value;
}

}  // namespace latenz::probe
