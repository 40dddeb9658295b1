// SPDX-License-Identifier: Apache-2.0
// First Cortex-R5 of a ZCU102, beside Linux on the A53 cores (addresses: UG1085, UG1087): memory
// that Linux does not use, the second UART, the last timer counter.
//
// QEMU has no interrupt controller for its R5: there the timer is polled. The path through the
// controller (a PL390) is chosen by the parameter `delivery`; it has not run on a board.
#pragma once

#include "devices/cadence_ttc.hpp"
#include "devices/cadence_uart.hpp"
#include "devices/gic_v2.hpp"
#include "remote/way_back.hpp"
#include "supervision.hpp"
#include "timer_list.hpp"
#include "vector_table.hpp"

namespace latenz::firmware {

struct Board {
  static constexpr const char* name = "zcu102-r5";
  static constexpr const char* core = "cortex-r5";
  static constexpr bool delivers_interrupts = false;
  using Console = CadenceUart<0xFF01'0000>;
  using Interrupts = GicV2<0xF900'0000, 0xF900'1000>;
  using Timers = TimerList<CadenceTtc<0xFF14'0000, 133'000'000, 77>>;
  using Supervision = Supervised<ControlBlock::zynqmp_address>;

  /// With interrupts the vectors are at 0, in the core's own memory. QEMU has Linux's memory there;
  /// without interrupts they are for faults only, and in the on-chip memory.
  static void prepare(bool interrupts) {
    interrupts ? VectorTable::place_low() : VectorTable::place_high();
  }

  static void power_off() { go_back_to_loader(); }  // or wait for Linux to do it
};

}  // namespace latenz::firmware
