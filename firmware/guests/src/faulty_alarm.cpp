// SPDX-License-Identifier: Apache-2.0
// An alarm clock whose handler fails now and then.
#include "alarm_clock.hpp"

namespace latenz::guests {

const std::uint64_t alarms_to_fault = 3;

}  // namespace latenz::guests
