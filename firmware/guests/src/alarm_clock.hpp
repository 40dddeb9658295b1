// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace latenz::guests {

/// After each so many alarms, in the middle of its handler, the guest touches what is not its; 0:
/// never.
extern const std::uint64_t alarms_to_fault;

}  // namespace latenz::guests
