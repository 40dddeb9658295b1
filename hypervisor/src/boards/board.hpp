// SPDX-License-Identifier: Apache-2.0
// What differs between boards. One program runs on all of them; the configuration says which it is.
#pragma once

#include <cstdint>
#include <span>

#include "configuration_check.hpp"

namespace latenz::hypervisor {

enum class UartKind : std::uint8_t { pl011, cadence };

struct Board {
  const char* name;
  std::uint64_t distributor;        ///< GICD
  std::uint64_t cpu_interface;      ///< GICC, two pages
  std::uint64_t virtual_control;    ///< GICH
  std::uint64_t virtual_interface;  ///< GICV, two pages
  std::uint64_t uart;
  UartKind uart_kind;
  std::uint64_t memory_begin;  ///< the hypervisor uses it from 0x4000'0000 on
  std::uint32_t cpus;
  /// What the hypervisor drives itself, and what reaches beyond all translation: masters of the
  /// bus, clocks and resets, protection units, power.
  std::span<const Range> not_for_guests;
};

/// Takes the board that a configuration is for; false if there is no such board.
[[nodiscard]] bool choose_board(BoardNumber number);

/// The board this runs on, once it is chosen.
const Board& board();

}  // namespace latenz::hypervisor
