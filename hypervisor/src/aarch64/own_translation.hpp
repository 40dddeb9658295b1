// SPDX-License-Identifier: Apache-2.0
// The hypervisor's own view of memory: its code cannot be written, its data not be executed, and
// guests' memory is not there at all.
#pragma once

#include "configuration.hpp"

namespace latenz::hypervisor {

class OwnTranslation {
 public:
  /// Once; fails if it cannot be.
  static void build(const Configuration& configuration);

  /// On every CPU.
  static void switch_on();
};

}  // namespace latenz::hypervisor
