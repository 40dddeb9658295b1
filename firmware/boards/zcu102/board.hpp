// SPDX-License-Identifier: Apache-2.0
// Cortex-A53 of a ZCU102 (Zynq UltraScale+), real or QEMU's xlnx-zcu102 (addresses: UG1085,
// UG1087). QEMU clocks the timer counters with 133 MHz; on the board it is the bus LPD_LSBUS,
// usually with 100 MHz: the host says so (parameter timer_hz).
#pragma once

#include "devices/cadence_ttc.hpp"
#include "devices/cadence_uart.hpp"
#include "devices/generic_timer.hpp"
#include "devices/gic_v2.hpp"
#include "psci.hpp"
#include "supervision.hpp"
#include "timer_list.hpp"

namespace latenz::firmware {

struct Board {
  static constexpr const char* name = "zcu102";
  static constexpr const char* core = "cortex-a53";
  static constexpr bool delivers_interrupts = true;
  using Console = CadenceUart<0xFF00'0000>;
  using Interrupts = GicV2<0xF901'0000, 0xF902'0000>;
  using Timers = TimerList<CadenceTtc<0xFF11'0000, 133'000'000, 68>, GenericTimer<>>;
  using Supervision = Unsupervised;
  static void prepare(bool /*interrupts*/) {}
  static void power_off() { Psci::off_by_secure_monitor(); }
};

}  // namespace latenz::firmware
