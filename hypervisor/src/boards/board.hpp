// SPDX-License-Identifier: Apache-2.0
// What differs between boards. There is one program for each architecture of interrupt controllers,
// GICv2 and GICv3; the configuration says which of its boards it is on.
#pragma once

#include <cstdint>
#include <span>

#include "configuration_check.hpp"
#include "gic_places.hpp"

namespace latenz::hypervisor {

enum class UartKind : std::uint8_t { pl011, cadence };

struct Board {
  BoardNumber number;
  const char* name;
  GicPlaces gic;
  std::uint64_t uart;
  UartKind uart_kind;
  std::uint32_t uart_divisor = 0;  ///< of a PL011, for 115,200 baud; 0: firmware has set it
  std::uint64_t memory_begin;      ///< the hypervisor uses it from 0x4000'0000 on
  std::uint32_t cpus;
  /// What the hypervisor drives itself, and what reaches beyond all translation: masters of the
  /// bus, clocks and resets, protection units, power.
  std::span<const Range> not_for_guests;
  std::uint64_t spin_table = 0;  ///< where firmware without PSCI lets CPUs wait; 0: there is PSCI
  std::uint64_t power_manager = 0;  ///< BCM2711's, which switches off; 0: PSCI does
};

/// Takes the board that a configuration is for; false if there is no such board.
[[nodiscard]] bool choose_board(BoardNumber number);

/// The board this runs on, once it is chosen.
const Board& board();

}  // namespace latenz::hypervisor
