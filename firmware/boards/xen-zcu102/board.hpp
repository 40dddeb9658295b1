// SPDX-License-Identifier: Apache-2.0
// A guest (DomU) of Xen on a ZCU102 to which the first triple timer counter was passed through at
// its own address and interrupt number; all else as any guest of Xen has it.
#pragma once

#include "devices/cadence_ttc.hpp"
#include "devices/generic_timer.hpp"
#include "devices/gic_v2.hpp"
#include "devices/physical_start.hpp"
#include "devices/pl011.hpp"
#include "psci.hpp"
#include "supervision.hpp"
#include "timer_list.hpp"

namespace latenz::firmware {

struct Board {
  static constexpr const char* name = "xen-zcu102";
  static constexpr const char* core = "cortex-a53";
  static constexpr bool delivers_interrupts = true;
  using Console = SbsaUart<0x2200'0000>;
  using Interrupts = GicV2<0x0300'1000, 0x0300'2000>;
  using Timers = TimerList<CadenceTtc<0xFF11'0000, 133'000'000, 68>, GenericTimer<>>;
  using Sleep = PhysicalStart;
  using Supervision = Unsupervised;
  static void prepare(bool /*interrupts*/) {}
  static void power_off() { Psci::off_by_hypervisor(); }
};

}  // namespace latenz::firmware
