// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace latenz::firmware {

/// The timers of a board that can be sources of events; the first is its usual one.
template <typename... Timers>
struct TimerList {};

}  // namespace latenz::firmware
