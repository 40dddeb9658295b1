// SPDX-License-Identifier: Apache-2.0
// Arm Generic Interrupt Controller, version 2 (and PL390): one interrupt, for the first core.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

/// `distributor` and `cpu_interface`: their addresses
template <std::uintptr_t distributor, std::uintptr_t cpu_interface>
class GicV2 {
 public:
  using Id = std::uint32_t;

  /// Lets one interrupt through. Reset state: all disabled, level sensitive.
  static void start(Id id) {
    Priorities::write(id, 0x80);
    if (id >= first_shared) Targets::write(id, 1);  // banked and fixed for the private ones
    Enables::write(id / 32, 1U << (id % 32));
    DistributorControl::write(1);
    PriorityMask::write(0xFF);
    InterfaceControl::write(1);
  }

  /// The interrupt being signalled; it is active until `end`.
  static Id acknowledge() { return Acknowledge::read(); }
  static void end(Id acknowledged) { EndOfInterrupt::write(acknowledged); }

  /// Number of the interrupt that was acknowledged.
  static Id number(Id acknowledged) { return acknowledged & 0x3FFU; }

  /// Whether nothing was there to be acknowledged.
  static bool spurious(Id acknowledged) { return number(acknowledged) >= 1020; }

 private:
  static constexpr Id first_shared = 32;
  using DistributorControl = Register<distributor + 0x000>;
  using Enables = RegisterArray<distributor + 0x100>;
  using Priorities = RegisterArray<distributor + 0x400, std::uint8_t>;
  using Targets = RegisterArray<distributor + 0x800, std::uint8_t>;
  using InterfaceControl = Register<cpu_interface + 0x00>;
  using PriorityMask = Register<cpu_interface + 0x04>;
  using Acknowledge = Register<cpu_interface + 0x0C>;
  using EndOfInterrupt = Register<cpu_interface + 0x10>;
};

}  // namespace latenz::firmware
