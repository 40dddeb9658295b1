// SPDX-License-Identifier: Apache-2.0
// A load on the second Cortex-A53.
#pragma once

#include "task.hpp"

namespace latenz::pair {

/// Switches the core on, by the system's firmware (PSCI), and lets it run for ever.
void load_another_core(Load load);

}  // namespace latenz::pair
