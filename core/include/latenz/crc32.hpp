// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zlib, gzip and Ethernet use it (reflected polynomial 0xEDB88320). Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace latenz {

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

/// A checksum that grows byte by byte.
class Crc32 {
 public:
  constexpr void add(std::uint8_t byte) {
    state_ = (state_ >> 8U) ^ crc32_table[(state_ ^ byte) & 0xFFU];
  }

  /// Of all bytes so far.
  [[nodiscard]] constexpr std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xFFFFFFFFU;
};

[[nodiscard]] constexpr std::uint32_t crc32(std::span<const std::byte> bytes) {
  Crc32 crc;
  for (const std::byte byte : bytes) {
    crc.add(static_cast<std::uint8_t>(byte));
  }
  return crc.value();
}

}  // namespace latenz
