// SPDX-License-Identifier: Apache-2.0
// Where a board has a GICv3.
#pragma once

#include <cstdint>

#include "gicv3_registers.hpp"

namespace latenz::hypervisor {

struct GicPlaces {
  std::uint64_t distributor;     ///< GICD
  std::uint64_t redistributors;  ///< GICR of the first CPU; those of the others follow

  /// What the hypervisor reaches: calls with address and size of each piece until one is false.
  template <typename Visit>
  [[nodiscard]] bool each_own(std::uint32_t cpus, Visit visit) const {
    return visit(distributor, Gicv3Gicd::frame) && visit(redistributors, size_of(cpus));
  }

  static constexpr std::uint64_t size_of(std::uint32_t cpus) {
    return std::uint64_t{cpus} * Gicr::size;
  }
};

}  // namespace latenz::hypervisor
