// SPDX-License-Identifier: Apache-2.0
// What GICv3 has beside the registers of gic_registers.hpp (Arm IHI 0069H, chapter 12): those of
// private interrupts lie, at the same offsets, in a frame of each CPU's redistributor.
// Freestanding.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

/// The distributor, by offset.
struct Gicv3Gicd {
  static constexpr std::uint32_t groups = 0x080;
  static constexpr std::uint32_t routes = 0x6000;  ///< eight bytes for each interrupt
  static constexpr std::uint32_t identification2 = 0xFFE8;
  static constexpr std::uint32_t frame = 0x1'0000;  ///< bytes of it

  // Bits of `control`, where there is one security state, or to who is not secure:
  static constexpr std::uint32_t enable_group1 = 1U << 1U;
  static constexpr std::uint32_t affinity_routing = 1U << 4U;
  static constexpr std::uint32_t one_security_state = 1U << 6U;
  static constexpr std::uint32_t writes_pend = 1U << 31U;
};

/// A redistributor, by offset: a frame of its own, then that of private interrupts.
struct Gicr {
  static constexpr std::uint32_t control = 0x000;
  static constexpr std::uint32_t implementer = 0x004;
  static constexpr std::uint32_t type = 0x008;  ///< eight bytes
  static constexpr std::uint32_t waker = 0x014;
  static constexpr std::uint32_t private_frame = 0x1'0000;
  static constexpr std::uint32_t size = 0x2'0000;

  // Bits of `control`:
  static constexpr std::uint32_t writes_pend = 1U << 3U;
  // Bits of `type`, whose upper half is the CPU's affinity:
  static constexpr std::uint64_t has_virtual_frames = 1U << 1U;  ///< GICv4: twice the size
  static constexpr std::uint64_t last = 1U << 4U;
  // Bits of `waker`:
  static constexpr std::uint32_t processor_sleep = 1U << 1U;
  static constexpr std::uint32_t children_asleep = 1U << 2U;
};

/// System registers that trap, as ESR_EL2 names them. All have op0 3, op1 0 and CRn 12.
class Gicv3Trapped {
  static constexpr std::uint32_t common = (3U << 20U) | (12U << 10U);
  static constexpr unsigned op2 = 17;
  static constexpr unsigned crm = 1;

 public:
  static constexpr std::uint32_t icc_sgi1r = common | (5U << op2) | (11U << crm);
  static constexpr std::uint32_t icc_asgi1r = common | (6U << op2) | (11U << crm);
  static constexpr std::uint32_t icc_sgi0r = common | (7U << op2) | (11U << crm);
  static constexpr std::uint32_t icc_sre = common | (5U << op2) | (12U << crm);
};

}  // namespace latenz::hypervisor
