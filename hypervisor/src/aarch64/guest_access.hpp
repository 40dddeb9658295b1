// SPDX-License-Identifier: Apache-2.0
// The one place where something comes in from a guest: every trap is decoded, checked and served
// here. A guest can reach nothing else of the hypervisor.
#pragma once

#include "aarch64/partition.hpp"
#include "machine.hpp"

namespace latenz::hypervisor {

/// Serves the trap that the CPU has just taken from this partition's guest.
Outcome serve_guest(Partition& partition);

}  // namespace latenz::hypervisor
