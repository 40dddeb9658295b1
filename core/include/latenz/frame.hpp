// SPDX-License-Identifier: Apache-2.0
// The result protocol: what a measuring program says over a serial line, one printable line a frame
// (docs/firmware.md has the byte table). A frame survives a console that puts a prefix before
// lines, mixes in messages of others, or loses and damages bytes: it is then whole or known to be
// lost. Freestanding.
//
// Line: "<~", base64 of the frame without padding, ">". Frame: kind (bit 7: the message goes on in
// the sender's next frame; bit 6: it began in an earlier one), sender, sequence number of the
// sender (varint), payload, CRC-32 of all before it (little endian). Varints are LEB128.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "latenz/crc32.hpp"

namespace latenz {

enum class FrameKind : std::uint8_t {
  hello = 1,    ///< JSON text: what is running, where, with which parameters
  samples = 2,  ///< varints: stream, index of the first sample, then pairs of ticks
  file = 3,     ///< length of the name and the name in the first frame of the file, then bytes
  note = 4,     ///< text for a reader
  fault = 5,    ///< text: why the program stopped
  end = 6,      ///< of each stream: varints stream and samples, CRC-32 of all its pairs as sent
};

struct FrameHeader {
  FrameKind kind = FrameKind::note;
  bool more = false;       ///< the message goes on in the sender's next frame
  bool continued = false;  ///< it began in an earlier one
  std::uint8_t sender = 0;
  std::uint32_t sequence = 0;
};

struct FrameLimits {
  /// Characters of a line without its end; Xen's emulated UART passes on lines of up to 126.
  static constexpr std::size_t line = 120;
  static constexpr std::size_t bytes = (line - 3) * 6 / 8;
  static constexpr std::size_t varint = 10;  ///< of a 64-bit number
};

/// Base64 without padding, in its usual alphabet.
struct FrameAlphabet {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  /// The six bits a character stands for, or -1.
  static constexpr int value(char character) {
    if (character >= 'A' && character <= 'Z') return character - 'A';
    if (character >= 'a' && character <= 'z') return character - 'a' + 26;
    if (character >= '0' && character <= '9') return character - '0' + 52;
    if (character == '+') return 62;
    return character == '/' ? 63 : -1;
  }
};

/// Bytes of a number as LEB128: seven bits a byte, lowest first, bit 7 set if more follow.
struct Varint {
  constexpr explicit Varint(std::uint64_t number) {
    do {
      const auto low = static_cast<std::uint8_t>(number & 0x7FU);
      number >>= 7U;
      bytes[size++] = static_cast<std::uint8_t>(low | (number != 0 ? 0x80U : 0U));
    } while (number != 0);
  }

  [[nodiscard]] constexpr std::span<const std::uint8_t> span() const { return {bytes, size}; }

  std::uint8_t bytes[FrameLimits::varint]{};
  std::size_t size = 0;
};

/// One frame while it is filled. The line it becomes lives as long as the builder.
class FrameBuilder {
 public:
  static constexpr std::uint8_t more_bit = 0x80;
  static constexpr std::uint8_t continued_bit = 0x40;

  /// Whether the message goes on is known only at its end: see `finish`.
  constexpr explicit FrameBuilder(const FrameHeader& header) {
    append(static_cast<std::uint8_t>(static_cast<unsigned>(header.kind) |
                                     (header.continued ? continued_bit : 0U)));
    append(header.sender);
    put(Varint(header.sequence).span());
  }

  /// Payload bytes that still fit.
  [[nodiscard]] constexpr std::size_t room() const { return FrameLimits::bytes - 4 - size_; }

  /// Adds bytes; none of them if not all fit.
  constexpr bool put(std::span<const std::uint8_t> bytes) {
    if (bytes.size() > room()) return false;
    for (const std::uint8_t byte : bytes) append(byte);
    return true;
  }

  /// The line, without its end. Nothing may be added any more.
  constexpr std::string_view finish(bool more) {
    bytes_[0] = static_cast<std::uint8_t>(bytes_[0] | (more ? more_bit : 0U));
    Crc32 crc;
    for (std::size_t i = 0; i < size_; ++i) crc.add(bytes_[i]);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      append(static_cast<std::uint8_t>(crc.value() >> shift));
    }
    return line();
  }

 private:
  constexpr void append(std::uint8_t byte) { bytes_[size_++] = byte; }

  constexpr std::string_view line() {
    std::size_t length = 0;
    const auto print = [this, &length](char character) { line_[length++] = character; };
    print('<');
    print('~');
    for (std::size_t bit = 0; bit < 8 * size_; bit += 6) print(FrameAlphabet::letters[six(bit)]);
    print('>');
    return {line_, length};
  }

  /// Six bits of the frame from the bit-th on, highest first; beyond its end they are zero.
  [[nodiscard]] constexpr unsigned six(std::size_t bit) const {
    const std::size_t byte = bit / 8;
    const unsigned next = byte + 1 < size_ ? bytes_[byte + 1] : 0U;
    const unsigned both = (unsigned{bytes_[byte]} << 8U) | next;
    return (both >> (10U - (bit % 8))) & 0x3FU;
  }

  std::size_t size_ = 0;
  std::uint8_t bytes_[FrameLimits::bytes]{};
  char line_[FrameLimits::line]{};
};

}  // namespace latenz
