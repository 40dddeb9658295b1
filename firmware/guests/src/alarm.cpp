// SPDX-License-Identifier: Apache-2.0
// An alarm clock that works.
#include "alarm_clock.hpp"

namespace latenz::guests {

const std::uint64_t alarms_to_fault = 0;

}  // namespace latenz::guests
