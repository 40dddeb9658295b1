// SPDX-License-Identifier: Apache-2.0
// Keeps CPUs busy without touching memory, and tells at its end how busy.
#pragma once

#include <span>

namespace latenz::probe {

/// What latenz-cpu-load does with its arguments; returns its exit code. Throws `Failure`.
int load_cpus(std::span<const char* const> arguments);

}  // namespace latenz::probe
