// SPDX-License-Identifier: Apache-2.0
#include "aarch64/virtual_console.hpp"

namespace latenz::hypervisor {
namespace {

/// Registers of a PL011 (Arm DDI 0183G, table 3-1).
enum Register : std::uint32_t { data = 0x00, flags = 0x18, control = 0x30, identification = 0xFE0 };
constexpr std::uint32_t transmit_full = 1U << 5U;
constexpr std::uint32_t transmit_empty = 1U << 7U;
constexpr std::uint32_t receive_empty = 1U << 4U;
constexpr std::uint8_t identification_bytes[] = {0x11, 0x10, 0x14, 0x00, 0x0D, 0xF0, 0x05, 0xB1};

}  // namespace

std::uint32_t VirtualConsole::read(std::uint32_t offset, unsigned /*bytes*/) const {
  if (offset == flags) {
    Console::pump(Console::at_once);
    return receive_empty | (Console::has_room(partition_) ? transmit_empty : transmit_full);
  }
  if (offset == control) return control_;
  if (offset >= identification && offset < identification + (4 * sizeof identification_bytes)) {
    return identification_bytes[(offset - identification) / 4];
  }
  return 0;
}

void VirtualConsole::write(std::uint32_t offset, unsigned /*bytes*/, std::uint32_t value) {
  if (offset == data) put(static_cast<char>(value));
  if (offset == control) control_ = value & 0xFFFFU;
}

/// What would spoil the terminal of whoever reads is shown as a dot. To begin a line is enough for
/// once: characters are sent when one ends that had begun before.
void VirtualConsole::put(char character) {
  if (character == '\r') return;
  const bool had_begun = has_begun_;
  if (!had_begun) begin_line();
  ++length_;
  if (character != '\n') {
    const bool printable = character == '\t' || (character >= ' ' && character != '\x7F');
    if (has_begun_) Console::add(partition_, printable ? character : '.');
    if (length_ < longest_line) return;
  }
  end_line();
  if (had_begun) Console::pump(Console::at_once);
}

/// What has no room is lost; the rest of the line may have some later.
void VirtualConsole::begin_line() {
  has_begun_ = Console::begin_line(partition_);
  if (!has_begun_ && length_ == 0) Console::lose_line(partition_);
}

void VirtualConsole::end_line() {
  if (has_begun_) Console::end_line(partition_);
  has_begun_ = false;
  length_ = 0;
}

}  // namespace latenz::hypervisor
