// SPDX-License-Identifier: Apache-2.0
// Words and numbers in the text of traces.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace latenz::trace {

/// Without blanks at both ends.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Is all of `text` a number of that base? It is left as it was if not.
template <typename Number>
bool parse_all(std::string_view text, Number& number, int base = 10) {
  const char* const first = text.data();
  const char* const last = first + text.size();
  Number value{};
  const auto [end, error] = std::from_chars(first, last, value, base);
  if (error != std::errc() || end != last || text.empty()) return false;
  number = value;
  return true;
}

}  // namespace latenz::trace
