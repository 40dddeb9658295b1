// SPDX-License-Identifier: Apache-2.0
// Text taken apart by words and lines as std::istream does it, which makes a static program a
// quarter larger: it brings every language's numbers, dates and money along.
#pragma once

#include <charconv>
#include <concepts>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "file.hpp"

namespace latenz::probe {

class Text {
 public:
  /// Reads a file bit by bit; one that cannot be opened has nothing, and is false from the start.
  [[nodiscard]] static Text of_file(const std::filesystem::path& path);

  explicit Text(std::string text) : held_(std::move(text)) {}

  /// Whether all that was asked for was there.
  [[nodiscard]] explicit operator bool() const { return !failed_; }
  /// Goes on after something was not there.
  void clear() { failed_ = false; }

  /// Takes the next line, without its end; false if there is none.
  bool line(std::string& line, char end = '\n');

  /// Takes the next word.
  Text& operator>>(std::string& word);

  /// Takes a whole number; what follows it stays. If there is none, 0.
  template <std::integral Number>
  Text& operator>>(Number& number) {
    number = 0;
    if (failed_) return *this;
    const std::string digits = take_digits();
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, number);
    failed_ = read.ec != std::errc{} || read.ptr != end;
    return *this;
  }

 private:
  [[nodiscard]] bool has_more();
  void skip_space();
  [[nodiscard]] std::string take_digits();

  File file_;
  std::string held_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// The first line of a file, without its end; empty if it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& path);

}  // namespace latenz::probe
