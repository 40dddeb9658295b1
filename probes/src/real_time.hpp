// SPDX-License-Identifier: Apache-2.0
// What a thread and its process take care of before they run in real time.
#pragma once

#include <cstdint>
#include <string_view>

#include "file.hpp"

namespace latenz::probe {

/// Touches the stack of the calling thread as deep as a measured loop may need it.
void prefault_stack();

/// Binds the calling thread to one CPU; returns 0 or the errno value.
[[nodiscard]] int stay_on(unsigned cpu);

/// Gives the calling thread a policy of the kernel's, such as SCHED_FIFO; returns 0 or the errno
/// value. `priority`: 0 for those that have none.
[[nodiscard]] int take_policy(int policy, int priority);

/// Keeps CPUs out of sleep states with a longer exit latency until `file` is closed.
/// Returns "held", "denied" or "absent".
[[nodiscard]] std::string_view hold_dma_latency(std::int32_t latency_us, File& file);

}  // namespace latenz::probe
