// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of each CPU busy, and tells at its end how busy.
#pragma once

#include <span>

namespace latenz::probe {

/// What latenz-memory-load does with its arguments; returns its exit code. Throws `Failure`.
int load_memory(std::span<const char* const> arguments);

}  // namespace latenz::probe
