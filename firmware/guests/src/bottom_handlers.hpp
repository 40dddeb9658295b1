// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace latenz::guests {

/// Prepares a bottom handler for each source of this partition, and lets their interrupts come.
/// @param share a handler takes one of so many parts of its time
void start_bottom_handlers(std::uint32_t share = 1);

}  // namespace latenz::guests
