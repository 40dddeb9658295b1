// SPDX-License-Identifier: Apache-2.0
// Files of perf record.
#include "trace_perf.hpp"

#include "trace_reading.hpp"

void latenz::fuzz::read_input(Input input) { read_trace<trace::TracePerf>(input); }
