// SPDX-License-Identifier: Apache-2.0
// A guest (DomU) of Xen on Arm with an emulated PL011 (addresses: Xen, public/arch-arm.h).
#pragma once

#include "devices/generic_timer.hpp"
#include "devices/gic_v2.hpp"
#include "devices/physical_start.hpp"
#include "devices/pl011.hpp"
#include "psci.hpp"
#include "supervision.hpp"
#include "timer_list.hpp"

namespace latenz::firmware {

struct Board {
  static constexpr const char* name = "xen-virt";
  static constexpr const char* core = "cortex-a53";
  static constexpr bool delivers_interrupts = true;
  using Console = SbsaUart<0x2200'0000>;
  using Interrupts = GicV2<0x0300'1000, 0x0300'2000>;
  using Timers = TimerList<GenericTimer<>>;
  using Sleep = PhysicalStart;
  using Supervision = Unsupervised;
  static void prepare(bool /*interrupts*/) {}
  static void power_off() { Psci::off_by_hypervisor(); }
};

}  // namespace latenz::firmware
