// SPDX-License-Identifier: Apache-2.0
// A guest's console: a PL011 that transmits. Its lines come out of the board's UART whole, with the
// partition's name before them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aarch64/console.hpp"

namespace latenz::hypervisor {

class VirtualConsole {
 public:
  /// @param partition  whose it is
  void begin(std::size_t partition) {
    partition_ = partition;
    control_ = as_after_reset;
  }

  /// Serves an access of the guest, `offset` below 0x1000.
  [[nodiscard]] std::uint32_t read(std::uint32_t offset, unsigned bytes) const;
  void write(std::uint32_t offset, unsigned bytes, std::uint32_t value);

  /// Ends the line that the guest is at, if it is at one.
  void end_line();

 private:
  static constexpr std::uint32_t as_after_reset = 0x300;
  static constexpr std::size_t longest_line = 160;

  void put(char character);
  void begin_line();

  std::size_t partition_ = 0;
  std::size_t length_ = 0;  ///< of the line that the guest is at
  bool has_begun_ = false;  ///< that line, at the board's console
  std::uint32_t control_ = 0;
};

}  // namespace latenz::hypervisor
