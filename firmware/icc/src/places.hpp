// SPDX-License-Identifier: Apache-2.0
// Where things are that both processors of a Zynq UltraScale+ see: channels in each memory, and the
// words by which the two programs meet. docs/pair.md has the map.
#pragma once

#include <cstddef>
#include <cstdint>

#include "task.hpp"

namespace latenz::pair {

/// A part of memory that one program or both use.
struct Area {
  std::uintptr_t begin;
  std::size_t size;
};

/// Below 0xFFFD0000 lie the control block and the resident loader of the real-time core, above
/// 0xFFFDFFFF Arm's trusted firmware and, under QEMU, the exception vectors of the real-time core.
inline constexpr Area on_chip{.begin = 0xFFFD'0000, .size = 0x1'0000};
/// The last page is for the words of `Meeting`.
inline constexpr std::uintptr_t meeting_place = on_chip.begin + on_chip.size - 0x1000;

/// Not cached by either side.
inline constexpr Area plain_ddr{.begin = 0x7F00'0000, .size = 0x20'0000};
/// Cached by the Cortex-A53 and snooped for the Cortex-R5.
inline constexpr Area coherent_ddr{.begin = 0x7F20'0000, .size = 0x20'0000};

#ifdef __aarch64__
/// The second tightly coupled memory of the first Cortex-R5, as others see it.
inline constexpr Area tightly_coupled{.begin = 0xFFE2'0000, .size = 0x1'0000};
#else
/// The same, as that core sees it.
inline constexpr Area tightly_coupled{.begin = 0x0002'0000, .size = 0x1'0000};
#endif

/// Room of a direction's channel: the way there, and the way back behind it.
inline constexpr std::size_t channel_room = 0x7000;

/// The area that a task asks for.
constexpr Area area_of(Memory memory) {
  switch (memory) {
    case Memory::ddr:
      return plain_ddr;
    case Memory::ddr_cci:
      return coherent_ddr;
    case Memory::tcm:
      return tightly_coupled;
    default:
      return on_chip;
  }
}

}  // namespace latenz::pair
