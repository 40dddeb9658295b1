// SPDX-License-Identifier: Apache-2.0
// A guest's interrupt controller is of the architecture that the board has: GICv2, or GICv3 with
// system registers. A guest finds out which, so that one program runs on all boards.
#pragma once

#include <cstdint>

#include "devices/gic_v2.hpp"
#include "devices/gic_v3.hpp"
#include "latenz/guest_machine.hpp"

namespace latenz::guests {

using hypervisor::GuestMachine;

/// ID_AA64PFR0_EL1.GIC: whether the CPU has the system registers of a GICv3.
inline bool has_gicv3() {
  std::uint64_t features = 0;  // NOLINT(misc-const-correctness): the instruction writes it
  asm("mrs %0, id_aa64pfr0_el1" : "=r"(features));
  return ((features >> 24U) & 0xFU) != 0;
}

/// The interrupts of this guest.
class Interrupts {
  using V2 = firmware::GicV2<GuestMachine::distributor, GuestMachine::cpu_interface>;
  using V3 = firmware::GicV3<GuestMachine::distributor, GuestMachine::redistributor,
                             firmware::GicV3Interface64>;

 public:
  using Id = std::uint32_t;

  static void start(Id id) { has_gicv3() ? V3::start(id) : V2::start(id); }
  /// The interrupt being signalled; it is active until `end`.
  static Id acknowledge() { return has_gicv3() ? V3::acknowledge() : V2::acknowledge(); }
  static void end(Id acknowledged) { has_gicv3() ? V3::end(acknowledged) : V2::end(acknowledged); }
  /// Number of the interrupt that was acknowledged.
  static Id number(Id acknowledged) { return V2::number(acknowledged); }
  /// Whether nothing was there to be acknowledged.
  static bool spurious(Id acknowledged) { return V2::spurious(acknowledged); }
};

}  // namespace latenz::guests
