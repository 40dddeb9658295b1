// SPDX-License-Identifier: Apache-2.0
// Starting CPUs and switching the board off: by PSCI (Arm DEN 0022D), or where the firmware has
// none by what the board has instead.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

class Power {
 public:
  /// Starts a CPU at `start_secondary`; false if it does not.
  [[nodiscard]] static bool start_cpu(std::uint32_t cpu);

  [[noreturn]] static void off();
};

}  // namespace latenz::hypervisor
