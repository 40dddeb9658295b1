// SPDX-License-Identifier: Apache-2.0
// The hypervisor's own view of memory: its code cannot be written, its data not be executed, and
// guests' memory is not there at all.
#pragma once

#include "configuration.hpp"

namespace latenz::hypervisor {

class OwnTranslation {
 public:
  /// Once: the image, the block of the configuration, devices.
  static void build();

  /// On every CPU. Before, memory is as devices are: no access may be unaligned.
  static void switch_on();

  /// What the configuration says there is besides: arrivals and the trace.
  static void add(const Configuration& configuration);
};

}  // namespace latenz::hypervisor
