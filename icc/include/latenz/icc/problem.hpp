// SPDX-License-Identifier: Apache-2.0
// Why a channel could not be opened, down to the field that differs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

namespace latenz::icc {

enum class Flaw : std::uint8_t {
  none,
  no_memory,      ///< null, not line-aligned, or fewer bytes than the channel needs
  not_ready,      ///< no channel is there (yet)
  abi_version,    ///< of the library
  line,           ///< bytes of a line
  kind,           ///< mailbox, exchange, latest, ring, pool
  field,          ///< a field of the payload: see `field` and `peer_field`
  field_count,    ///< more fields than any type may have
  payload_bytes,  ///< whole payload, all fields alike: padding at its end
  fingerprint,    ///< fields alike as far as stored: names that differ after their 15th letter
  readers,
  slots,
  channel_bytes,
  reader,  ///< no reader has this index
};

/// What differs. `here` is this side's value, `there` the one in shared memory.
struct Problem {
  Flaw flaw = Flaw::none;
  std::uint8_t payload = 0;  ///< 0: payload or request, 1: reply
  std::uint32_t here = 0;
  std::uint32_t there = 0;
  Field field{};       ///< `Flaw::field`: this side's; its name is empty if this side has none
  Field peer_field{};  ///< `Flaw::field`: the one in shared memory

  /// Whether there is one.
  constexpr explicit operator bool() const noexcept { return flaw != Flaw::none; }

  /// Writes one line that says what is wrong, ended by 0, cut off at `bytes`; returns its length.
  constexpr std::size_t describe(char* text, std::size_t bytes) const noexcept;
};

/// An endpoint, or why there is none: `if (auto opened = X::attach(...)) use(*opened);`
template <class Endpoint>
class [[nodiscard]] Opened {
 public:
  constexpr explicit Opened(const Endpoint& endpoint) noexcept : endpoint_{endpoint} {}
  constexpr explicit Opened(const Problem& problem) noexcept : problem_{problem} {}

  constexpr explicit operator bool() const noexcept { return !problem_; }
  constexpr Endpoint& operator*() noexcept { return endpoint_; }
  constexpr Endpoint* operator->() noexcept { return &endpoint_; }
  constexpr const Endpoint& operator*() const noexcept { return endpoint_; }
  constexpr const Endpoint* operator->() const noexcept { return &endpoint_; }
  [[nodiscard]] constexpr const Problem& problem() const noexcept { return problem_; }

 private:
  Endpoint endpoint_{};
  Problem problem_{};
};

namespace detail {

/// Builds a line of text in the caller's memory.
class Line {
 public:
  constexpr Line(char* text, std::size_t bytes) noexcept : text_{text}, bytes_{bytes} {}

  constexpr Line& operator<<(const char* part) noexcept {
    for (; *part != '\0'; ++part) {
      put(*part);
    }
    return *this;
  }
  constexpr Line& operator<<(std::uint32_t number) noexcept {
    char digits[10]{};
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count != 0) {
      put(digits[--count]);
    }
    return *this;
  }
  constexpr Line& operator<<(const Field& field) noexcept {
    if (field.count == 0) {
      return *this << "nothing";
    }
    *this << name_of(field.kind) << std::uint32_t{field.size} * 8U;
    if (field.count != 1) {
      *this << "[" << field.count << "] every " << field.stride << " bytes";
    }
    *this << " '";
    for (std::size_t i = 0; i < sizeof field.name && field.name[i] != '\0'; ++i) {
      put(field.name[i]);
    }
    return *this << "' at " << field.offset;
  }
  /// Ends the text; returns its length.
  constexpr std::size_t end() noexcept {
    if (bytes_ != 0) {
      text_[length_] = '\0';
    }
    return length_;
  }

 private:
  constexpr void put(char letter) noexcept {
    if (length_ + 1 < bytes_) {
      text_[length_++] = letter;
    }
  }

  char* text_;
  std::size_t bytes_;
  std::size_t length_ = 0;
};

constexpr const char* subject_of(Flaw flaw) noexcept {
  switch (flaw) {
    case Flaw::abi_version:
      return "ABI version";
    case Flaw::line:
      return "bytes of a line";
    case Flaw::kind:
      return "kind of channel";
    case Flaw::field_count:
      return "number of fields";
    case Flaw::payload_bytes:
      return "size of the payload";
    case Flaw::readers:
      return "number of readers";
    case Flaw::slots:
      return "number of slots";
    case Flaw::channel_bytes:
      return "size of the channel";
    default:
      return "";
  }
}

}  // namespace detail

constexpr std::size_t Problem::describe(char* text, std::size_t bytes) const noexcept {
  detail::Line line{text, bytes};
  switch (flaw) {
    case Flaw::none:
      line << "no problem";
      break;
    case Flaw::no_memory:
      line << "memory must begin at a line of 64 bytes and have " << here << " bytes, not "
           << there;
      break;
    case Flaw::not_ready:
      line << "no channel is there: its creator has not formatted it";
      break;
    case Flaw::field:
      line << (payload == 0 ? "payload differs: here " : "reply differs: here ") << field
           << ", in memory " << peer_field;
      break;
    case Flaw::fingerprint:
      line << (payload == 0 ? "payload" : "reply")
           << " differs in names of fields after their 15th letter";
      break;
    case Flaw::reader:
      line << "the channel has " << there << " readers, numbered from 0: none is " << here;
      break;
    default:
      line << detail::subject_of(flaw) << " differs: here " << here << ", in memory " << there;
  }
  return line.end();
}

}  // namespace latenz::icc
