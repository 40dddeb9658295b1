// SPDX-License-Identifier: Apache-2.0
// The one place where something comes in from a guest: every trap is decoded, checked and served
// here. A guest can reach nothing else of the hypervisor.
#pragma once

#include <cstdint>

#include "aarch64/partition.hpp"

namespace latenz::hypervisor {

/// What the rest of the hypervisor has to do for a trap.
enum class Outcome : std::uint8_t {
  served,
  ended,      ///< the partition does not run any more
  restarted,  ///< it begins anew
};

/// Serves the trap that the CPU has just taken from this partition's guest.
Outcome serve_guest(Partition& partition);

}  // namespace latenz::hypervisor
