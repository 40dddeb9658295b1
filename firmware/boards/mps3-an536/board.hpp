// SPDX-License-Identifier: Apache-2.0
// Cortex-R52 of Arm's FPGA image AN536 for the MPS3 board, real or QEMU's mps3-an536 (addresses:
// Arm AN536). The generic timer is the usual one; the dual timer runs with the peripherals' clock.
#pragma once

#include "devices/cmsdk_dual_timer.hpp"
#include "devices/cmsdk_uart.hpp"
#include "devices/generic_timer.hpp"
#include "devices/gic_v3.hpp"
#include "supervision.hpp"
#include "timer_list.hpp"

namespace latenz::firmware {

struct Board {
  static constexpr const char* name = "mps3-an536";
  static constexpr const char* core = "cortex-r52";
  static constexpr bool delivers_interrupts = true;
  static constexpr std::uint32_t peripheral_hz = 50'000'000;
  using Console = CmsdkUart<0xE7C0'0000, peripheral_hz / 115'200>;
  using Interrupts = GicV3<0xF000'0000, 0xF010'0000>;
  using Timers = TimerList<GenericTimer<>, CmsdkDualTimer<0xE010'1000, peripheral_hz, 32 + 3>>;
  using Supervision = Unsupervised;
  static void prepare(bool /*interrupts*/) {}
  static void power_off() {}  // nothing there that could
};

}  // namespace latenz::firmware
