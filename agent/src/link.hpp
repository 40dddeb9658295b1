// SPDX-License-Identifier: Apache-2.0
// One end of a link on the target: copies between the standard streams and the keeper.
#pragma once

#include <string>

#include "file.hpp"

namespace latenz::agent {

/// Says that the agent is there, then copies until either side ends. What shells and banners print
/// before that line is not the agent's.
void copy_link(const probe::File& keeper, const std::string& token);

}  // namespace latenz::agent
