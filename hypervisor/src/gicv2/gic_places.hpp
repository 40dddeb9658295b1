// SPDX-License-Identifier: Apache-2.0
// Where a board has a GICv2 with virtualization.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

struct GicPlaces {
  static constexpr std::uint64_t page = 0x1000;

  std::uint64_t distributor;        ///< GICD
  std::uint64_t cpu_interface;      ///< GICC, two pages
  std::uint64_t virtual_control;    ///< GICH
  std::uint64_t virtual_interface;  ///< GICV, two pages

  /// What the hypervisor reaches: calls with address and size of each piece until one is false.
  template <typename Visit>
  [[nodiscard]] bool each_own(std::uint32_t /*cpus*/, Visit visit) const {
    return visit(distributor, page) && visit(cpu_interface, 2 * page) &&
           visit(virtual_control, page);
  }
};

}  // namespace latenz::hypervisor
