// SPDX-License-Identifier: Apache-2.0
// Traces as text: of tracefs, trace-cmd report and perf script.
#include "trace_text.hpp"

#include "trace_reading.hpp"

void latenz::fuzz::read_input(Input input) { read_trace<trace::TraceText>(input); }
