// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "task.hpp"

namespace latenz::pair {

/// Loads are the Cortex-A53's to start.
inline void load_another_core(Load /*load*/) {}

}  // namespace latenz::pair
