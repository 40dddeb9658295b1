// SPDX-License-Identifier: Apache-2.0
// Files of trace-cmd.
#include "trace_dat.hpp"

#include "trace_reading.hpp"

void latenz::fuzz::read_input(Input input) { read_trace<trace::TraceDat>(input); }
