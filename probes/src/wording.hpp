// SPDX-License-Identifier: Apache-2.0
// Sentences of several parts.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>

namespace latenz::probe {

/// A number as 0x and hexadecimal digits.
inline std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto done = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return "0x" + std::string(digits.data(), done.ptr);
}

/// Texts and numbers, one after the other.
template <typename... Parts>
std::string worded(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace latenz::probe
