// SPDX-License-Identifier: Apache-2.0
// Whether a configuration can be carried out. `latenz hypervisor build` makes only such; this is
// for blocks that were damaged or made by others. Freestanding.
#pragma once

#include <string_view>

#include "configuration.hpp"

namespace latenz::hypervisor {

/// What is wrong with it; nothing if it is fine.
///
/// @param cpus of the board
std::string_view problem_of(const Configuration& configuration, std::uint32_t cpus);

/// The same for the list of arrivals, whose place is known to be in memory.
std::string_view problem_of_arrivals(const Configuration& configuration);

}  // namespace latenz::hypervisor
