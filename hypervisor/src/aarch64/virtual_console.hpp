// SPDX-License-Identifier: Apache-2.0
// A guest's console: a PL011 that transmits. Its lines come out of the board's UART whole, with the
// partition's name before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aarch64/console.hpp"

namespace latenz::hypervisor {

class VirtualConsole {
 public:
  /// @param prefix     lives as long as this
  /// @param partition  whose it is
  void begin(std::string_view prefix, std::size_t partition) {
    prefix_ = prefix;
    partition_ = partition;
    control_ = as_after_reset;
  }

  /// Serves an access of the guest, `offset` below 0x1000.
  [[nodiscard]] std::uint32_t read(std::uint32_t offset, unsigned bytes) const;
  void write(std::uint32_t offset, unsigned bytes, std::uint32_t value);

 private:
  static constexpr std::uint32_t as_after_reset = 0x300;

  void put(char character);

  std::string_view prefix_;
  std::size_t partition_ = 0;
  char line_[160]{};
  std::size_t length_ = 0;
  std::uint32_t control_ = 0;
};

}  // namespace latenz::hypervisor
