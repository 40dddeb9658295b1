// SPDX-License-Identifier: Apache-2.0
// Writes one JSON document; the caller keeps objects and arrays balanced.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace latenz::probe {

class Json {
 public:
  Json& open_object() { return open('{'); }
  Json& close_object() { return close('}'); }
  Json& open_array() { return open('['); }
  Json& close_array() { return close(']'); }

  Json& key(std::string_view name) {
    value(name);
    text_ += ": ";
    first_ = true;
    return *this;
  }

  Json& value(std::integral auto number) { return raw(std::to_string(number)); }
  Json& value(bool truth) { return raw(truth ? "true" : "false"); }
  Json& null() { return raw("null"); }

  Json& value(std::string_view text) {
    separate();
    text_ += '"';
    for (const char character : text) {
      append_escaped(character);
    }
    text_ += '"';
    return *this;
  }
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(const std::string& text) { return value(std::string_view(text)); }

  /// `null` if there is none.
  template <typename Value>
  Json& value(const std::optional<Value>& known) {
    return known ? value(*known) : null();
  }

  template <typename Value>
  Json& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Json& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }

  Json& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }

  Json& raw(std::string_view text) {
    separate();
    text_ += text;
    return *this;
  }

  void separate() {
    if (!first_) {
      text_ += ", ";
    }
    first_ = false;
  }

  /// Bytes outside printable ASCII (a task may have any name) become '?': always valid UTF-8.
  void append_escaped(char character) {
    if (character == '"' || character == '\\') {
      text_ += '\\';
    }
    text_ += character >= ' ' && character <= '~' ? character : '?';
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace latenz::probe
