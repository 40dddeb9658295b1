// SPDX-License-Identifier: Apache-2.0
// Bytes of a trace, read within bounds: what lies outside is damage, told with its place.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "file.hpp"

namespace latenz::trace {

/// A place of the file that cannot be read; `what()` tells why, without the place.
class Damage : public std::runtime_error {
 public:
  Damage(std::uint64_t offset, const std::string& reason)
      : std::runtime_error(reason), offset_(offset) {}

  /// Of the byte in the file; in compressed parts that of the part.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

 private:
  std::uint64_t offset_;
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Fills `into`; throws `Damage` if that reaches past the end.
  virtual void read(std::uint64_t offset, std::span<std::uint8_t> into) const = 0;
  /// Where in the file the byte at `offset` is.
  [[nodiscard]] virtual std::uint64_t place(std::uint64_t offset) const = 0;
};

class FileSource final : public Source {
 public:
  /// Throws `probe::Failure` if `path` cannot be opened or is not a regular file.
  explicit FileSource(const std::string& path);
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::uint8_t> into) const override;
  [[nodiscard]] std::uint64_t place(std::uint64_t offset) const override { return offset; }

  /// As many bytes as there are, up to the size of `into`.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::uint8_t> into) const;

 private:
  probe::File file_;
  std::uint64_t size_ = 0;
};

/// A part that was compressed; all of its places are where it starts in the file.
class MemorySource final : public Source {
 public:
  MemorySource(std::vector<std::uint8_t> bytes, std::uint64_t place)
      : bytes_(std::move(bytes)), place_(place) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::uint8_t> into) const override;
  [[nodiscard]] std::uint64_t place(std::uint64_t /*offset*/) const override { return place_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::uint64_t place_;
};

template <typename Number>
[[nodiscard]] Number loaded(std::span<const std::uint8_t> bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

/// A number of 1 to 8 bytes in the file's byte order.
[[nodiscard]] inline std::uint64_t number_of(std::span<const std::uint8_t> bytes, bool big_endian) {
  if (!big_endian && std::endian::native == std::endian::little) {  // nearly all of them are so
    switch (bytes.size()) {
      case 1:
        return bytes[0];
      case 2:
        return loaded<std::uint16_t>(bytes);
      case 4:
        return loaded<std::uint32_t>(bytes);
      case 8:
        return loaded<std::uint64_t>(bytes);
      default:
        break;
    }
  }
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    number = number << 8U | bytes[big_endian ? i : bytes.size() - 1 - i];
  }
  return number;
}

/// Reads one thing after the other from [position, end) of a source.
class Cursor {
 public:
  Cursor(const Source& source, std::uint64_t position, std::uint64_t end, bool big_endian)
      : source_(&source), position_(position), end_(end), big_endian_(big_endian) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t left() const { return end_ - position_; }
  /// For messages.
  [[nodiscard]] std::uint64_t place() const { return source_->place(position_); }

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  /// Up to a zero byte, which is read, too; throws `Damage` if it is longer than `longest`.
  std::string string(std::size_t longest = 4096);
  std::string take(std::uint64_t size);
  void skip(std::uint64_t size);
  /// Throws `Damage` if fewer bytes are left.
  void need(std::uint64_t size) const;

 private:
  std::uint64_t number(std::size_t size);

  const Source* source_;
  std::uint64_t position_;
  std::uint64_t end_;
  bool big_endian_;
};

}  // namespace latenz::trace
