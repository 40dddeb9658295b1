// SPDX-License-Identifier: Apache-2.0
// The interrupt controller of the board that this runs on.
#pragma once

#include "gic.hpp"

namespace latenz::hypervisor {

extern Distributor board_distributor;
extern VirtualControl list_registers;  ///< of the CPU this runs on

/// Where guests' interrupts come from.
struct BoardGic {
  static const VirtualControl& lists() { return list_registers; }
  static const Distributor& distributor() { return board_distributor; }
};

}  // namespace latenz::hypervisor
