// SPDX-License-Identifier: Apache-2.0
// QEMU's machine `virt` with a Cortex-A53 and GICv2 (addresses: QEMU, hw/arm/virt.c).
#pragma once

#include "devices/generic_timer.hpp"
#include "devices/gic_v2.hpp"
#include "devices/pl011.hpp"
#include "psci.hpp"
#include "supervision.hpp"
#include "timer_list.hpp"

namespace latenz::firmware {

struct Board {
  static constexpr const char* name = "virt";
  static constexpr const char* core = "cortex-a53";
  static constexpr bool delivers_interrupts = true;
  using Console = Pl011<0x0900'0000>;
  using Interrupts = GicV2<0x0800'0000, 0x0801'0000>;
  using Timers = TimerList<GenericTimer<>>;
  using Supervision = Unsupervised;
  static void prepare(bool /*interrupts*/) {}
  static void power_off() { Psci::off_by_hypervisor(); }
};

}  // namespace latenz::firmware
