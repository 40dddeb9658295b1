// SPDX-License-Identifier: Apache-2.0
// What a guest sees of the board's interrupts.
#pragma once

#include "aarch64/board_gic.hpp"
#include "basic_virtual_gic.hpp"

namespace latenz::hypervisor {

using VirtualGic = BasicVirtualGic<BoardGic>;

}  // namespace latenz::hypervisor
