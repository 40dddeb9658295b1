// SPDX-License-Identifier: Apache-2.0
// Reads a trace of whatever format.
#pragma once

#include "trace_event.hpp"
#include "trace_source.hpp"

namespace latenz::trace {

/// Hands on the events of a file: trace.dat, perf.data, or text. `wants_functions`: also names of
/// functions in trace.dat; `on_host`: times of a guest's trace.dat by the host's clock.
[[nodiscard]] Description read_trace(const FileSource& file, Consumer& consumer,
                                     bool wants_functions, bool on_host);

}  // namespace latenz::trace
