// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace latenz::guests {

/// Prepares a bottom handler for each source of this partition, and lets their interrupts come.
void start_bottom_handlers();

}  // namespace latenz::guests
