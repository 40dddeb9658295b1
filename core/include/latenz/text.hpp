// SPDX-License-Identifier: Apache-2.0
// Text in a fixed buffer; what does not fit is cut. Freestanding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latenz {

template <std::size_t capacity>
class Text {
 public:
  void clear() { size_ = 0; }

  Text& add(std::string_view text) {
    text.remove_suffix(text.size() - std::min(text.size(), capacity - size_));
    for (const char character : text) buffer_[size_++] = character;
    return *this;
  }

  Text& add(std::uint64_t number) { return add_digits(number, 10); }
  Text& add_hex(std::uint64_t number) { return add("0x").add_digits(number, 16); }

  [[nodiscard]] std::string_view view() const { return {buffer_, size_}; }

 private:
  Text& add_digits(std::uint64_t number, unsigned base) {
    char digits[20];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return add({digits + at, sizeof digits - at});
  }

  char buffer_[capacity];
  std::size_t size_ = 0;
};

}  // namespace latenz
