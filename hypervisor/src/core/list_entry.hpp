// SPDX-License-Identifier: Apache-2.0
// What is written into a list register: an interrupt as the hardware shows it to a guest. One type
// for each architecture of interrupt controllers. Freestanding.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

/// What entries of all architectures have in common; `Bits` says where.
template <typename Bits>
struct ListEntry : Bits {
  using Value = Bits::Value;

  static constexpr std::uint32_t id(Value entry) {
    return static_cast<std::uint32_t>(entry & 0x3FFU);
  }
  static constexpr bool only_pends(Value entry) {
    return (entry & (Bits::active | Bits::pending)) == Bits::pending;
  }
  static constexpr bool valid(Value entry) { return (entry & (Bits::active | Bits::pending)) != 0; }
};

/// GICH_LR (Arm IHI 0048B, 5.3.10).
struct Gicv2ListBits {
  using Value = std::uint32_t;

  static constexpr Value group = 0;  ///< guests take group 0
  static constexpr Value hardware = 1U << 31U;
  static constexpr Value active = 1U << 29U;
  static constexpr Value pending = 1U << 28U;
  static constexpr Value maintenance = 1U << 19U;  ///< asked for at its end, if no hardware
  static constexpr unsigned priority_shift = 23;   ///< five bits
  static constexpr unsigned physical_shift = 10;
};

/// ICH_LR_EL2 (Arm IHI 0069H, 12.4.8).
struct Gicv3ListBits {
  using Value = std::uint64_t;

  static constexpr Value group = 1ULL << 60U;  ///< guests take group 1
  static constexpr Value hardware = 1ULL << 61U;
  static constexpr Value active = 1ULL << 63U;
  static constexpr Value pending = 1ULL << 62U;
  static constexpr Value maintenance = 1ULL << 41U;
  static constexpr unsigned priority_shift = 51;  ///< the upper five of eight bits
  static constexpr unsigned physical_shift = 32;
};

using Gicv2ListEntry = ListEntry<Gicv2ListBits>;
using Gicv3ListEntry = ListEntry<Gicv3ListBits>;

}  // namespace latenz::hypervisor
