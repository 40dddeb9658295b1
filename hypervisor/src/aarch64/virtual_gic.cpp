// SPDX-License-Identifier: Apache-2.0
#include "aarch64/virtual_gic.hpp"

#include "basic_virtual_gic_members.hpp"

namespace latenz::hypervisor {

constinit Distributor board_distributor{};
constinit VirtualControl list_registers{};

template class BasicVirtualGic<BoardGic>;

}  // namespace latenz::hypervisor
