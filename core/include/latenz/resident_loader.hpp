// SPDX-License-Identifier: Apache-2.0
// What Linux and the resident loader of a real-time core tell each other where no hardware can hold
// or restart that core, as in QEMU's ZCU102. The program it starts is supervised by its control
// block (latenz/control_block.hpp). docs/amp.md has the table. Freestanding.
#pragma once

#include <cstdint>

namespace latenz {

enum class LoaderState : std::uint32_t {
  waiting = 1,  ///< for a program; the last one, if any, has ended
  started = 2,  ///< a program runs
  crashed = 3,  ///< waits as well; an exception ended the last program
};

/// 32-bit words, little endian.
struct LoaderBlock {
  static constexpr std::uint32_t zynqmp_address = 0xFFFC'0100;  ///< after the control block
  static constexpr std::uint32_t expected_magic = 0x444C'5A4C;  ///< "LZLD"
  static constexpr std::uint32_t current_version = 1;

  std::uint32_t magic;              ///< loader, once the rest is valid
  std::uint32_t version;            ///< loader
  LoaderState state;                ///< loader
  std::uint32_t way_back;           ///< loader: where a program jumps to when it is done
  std::uint32_t exception;          ///< loader: place of the last exception in the vector table
  std::uint32_t exception_address;  ///< loader: of the instruction
  std::uint32_t answered;           ///< loader: the last request it has done
  std::uint32_t request;            ///< Linux: one more than `answered` starts the program
  std::uint32_t entry;              ///< Linux: where the program begins
};

static_assert(sizeof(LoaderBlock) == 36, "the layout is documented");

/// Memory for programs of the real-time cores; Linux' device tree leaves it out.
struct RemoteMemory {
  static constexpr std::uint64_t begin = 0x7000'0000;
  static constexpr std::uint64_t end = 0x8000'0000;
};

}  // namespace latenz
