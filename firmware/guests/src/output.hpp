// SPDX-License-Identifier: Apache-2.0
// What the firmware's exception handler (exceptions.cpp) needs, for partitions.
#pragma once

#include <string_view>

namespace latenz::firmware {

/// Says why, and ends this partition.
[[noreturn]] void fail(std::string_view reason);

}  // namespace latenz::firmware
