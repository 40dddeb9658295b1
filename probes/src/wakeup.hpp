// SPDX-License-Identifier: Apache-2.0
// Measures how late threads wake up. docs/probe.md says how and what it means.
#pragma once

#include <span>

namespace latenz::probe {

/// What latenz-wakeup does with its arguments; returns its exit code. Throws `Failure`.
int measure_wakeups(std::span<const char* const> arguments);

}  // namespace latenz::probe
