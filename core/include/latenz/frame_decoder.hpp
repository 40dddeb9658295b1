// SPDX-License-Identifier: Apache-2.0
// Finds frames (frame.hpp) in a stream of characters that holds other text too, and tells which
// frames are missing. Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "latenz/frame.hpp"

namespace latenz {

/// Reads varints and bytes from a payload; a number that is cut off or too large makes it fail.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const std::uint8_t> payload) : rest_(payload) {}

  [[nodiscard]] std::span<const std::uint8_t> rest() const { return rest_; }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

  std::optional<std::uint64_t> varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const std::uint64_t byte = rest_.front();
      rest_ = rest_.subspan(1);
      if (shift == 63 && byte > 1) return std::nullopt;
      number |= (byte & 0x7FU) << shift;
      if (byte < 0x80U) return number;
    }
    return std::nullopt;
  }

  /// A little-endian word.
  std::optional<std::uint32_t> word() {
    if (rest_.size() < 4) return std::nullopt;
    std::uint32_t number = 0;
    for (unsigned i = 0; i < 4; ++i) number |= std::uint32_t{rest_[i]} << (8 * i);
    rest_ = rest_.subspan(4);
    return number;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Takes one character at a time.
class FrameDecoder {
 public:
  enum class Step : std::uint8_t {
    held,     ///< the characters held may become a frame
    text,     ///< the characters held are text
    frame,    ///< the characters held are a frame
    damaged,  ///< the characters held looked like a frame but are none
  };

  Step feed(char character) {
    if (step_ != Step::held) {
      length_ = 0;
      if (starts_over_) held_[length_++] = start_mark[0];
      starts_over_ = false;
    }
    if (length_ > 0 && character == start_mark[0]) {
      starts_over_ = true;  // held from the next step on
      return step_ = length_ > 1 ? Step::damaged : Step::text;
    }
    held_[length_++] = character;
    return step_ = judge(character);
  }

  /// The characters held, valid until the next step.
  [[nodiscard]] std::string_view held() const { return {held_.data(), length_}; }

  /// Of the frame, valid until the next step.
  [[nodiscard]] const FrameHeader& header() const { return header_; }
  [[nodiscard]] std::span<const std::uint8_t> payload() const { return payload_; }

 private:
  static constexpr std::string_view start_mark = "<~";

  [[nodiscard]] Step judge(char character) {
    if (length_ <= start_mark.size()) {
      return character == start_mark[length_ - 1] ? Step::held : Step::text;
    }
    if (character == '>') return decode() ? Step::frame : Step::damaged;
    const bool goes_on = FrameAlphabet::value(character) >= 0 && length_ < FrameLimits::line;
    return goes_on ? Step::held : Step::damaged;
  }

  bool decode() {
    if (!decode_letters() || size_ < 4) return false;
    const std::span<const std::uint8_t> checked(bytes_.data(), size_ - 4);
    Crc32 crc;
    for (const std::uint8_t byte : checked) crc.add(byte);
    PayloadReader expected(std::span<const std::uint8_t>(bytes_.data(), size_).last(4));
    return expected.word() == crc.value() && decode_header(checked);
  }

  /// False if the letters cannot have come from whole bytes.
  bool decode_letters() {
    size_ = 0;
    unsigned bits = 0;
    unsigned pending = 0;
    const std::string_view letters(held_.data() + start_mark.size(),
                                   length_ - start_mark.size() - 1);  // substr could throw
    for (const char letter : letters) {
      pending = (pending << 6U) | static_cast<unsigned>(FrameAlphabet::value(letter));
      bits += 6;
      if (bits < 8) continue;
      bits -= 8;
      bytes_[size_++] = static_cast<std::uint8_t>(pending >> bits);
      pending &= (1U << bits) - 1U;
    }
    return bits < 6 && pending == 0;
  }

  bool decode_header(std::span<const std::uint8_t> frame) {
    if (frame.size() < 3) return false;
    const unsigned kind =
        frame[0] & ~unsigned{FrameBuilder::more_bit | FrameBuilder::continued_bit};
    PayloadReader rest(frame.subspan(2));
    const std::optional<std::uint64_t> sequence = rest.varint();
    if (kind < 1 || kind > static_cast<unsigned>(FrameKind::end)) return false;
    if (!sequence || *sequence > UINT32_MAX) return false;
    header_ = {.kind = static_cast<FrameKind>(kind),
               .more = (frame[0] & FrameBuilder::more_bit) != 0,
               .continued = (frame[0] & FrameBuilder::continued_bit) != 0,
               .sender = frame[1],
               .sequence = static_cast<std::uint32_t>(*sequence)};
    payload_ = rest.rest();
    return true;
  }

  std::array<char, FrameLimits::line> held_{};
  std::size_t length_ = 0;
  Step step_ = Step::text;
  bool starts_over_ = false;
  std::array<std::uint8_t, FrameLimits::bytes> bytes_{};
  std::size_t size_ = 0;
  FrameHeader header_;
  std::span<const std::uint8_t> payload_;
};

/// Follows the sequence numbers of one sender.
class FrameSequence {
 public:
  enum class Place : std::uint8_t { next, after_gap, repeated, restarted };

  Place take(const FrameHeader& header) {
    const std::uint32_t number = header.sequence;
    const bool restart = header.kind == FrameKind::hello && number == 0 && next_ > 1;
    if (number < next_ && !restart) return Place::repeated;
    gap_ = restart ? 0 : number - next_;
    next_ = number + 1;
    if (restart) return Place::restarted;
    return gap_ == 0 ? Place::next : Place::after_gap;
  }

  /// Frames missing just before the last one taken.
  [[nodiscard]] std::uint32_t gap() const { return gap_; }

 private:
  std::uint32_t next_ = 0;
  std::uint32_t gap_ = 0;
};

}  // namespace latenz
