// SPDX-License-Identifier: Apache-2.0
// What differs between boards. One image runs on all of them: it finds out where it is.
#pragma once

#include <cstdint>

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
};

/// The board this runs on.
const Board& board();

}  // namespace latenz::hypervisor
