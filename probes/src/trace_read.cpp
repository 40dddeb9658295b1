// SPDX-License-Identifier: Apache-2.0
#include "trace_read.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "trace_dat.hpp"
#include "trace_perf.hpp"
#include "trace_text.hpp"

namespace latenz::trace {

Description read_trace(const FileSource& file, Consumer& consumer, bool wants_functions,
                       bool on_host) {
  std::array<std::uint8_t, dat_magic.size()> start{};
  const bool is_dat =
      file.read_some(0, start) == start.size() && std::ranges::equal(start, dat_magic);
  if (is_dat) {
    TraceDat trace(file);
    trace.read(consumer, wants_functions, on_host);
    return trace.description();
  }
  if (is_perf(start)) {
    TracePerf trace(file);
    trace.read(consumer);
    return trace.description();
  }
  TraceText trace(file);
  trace.read(consumer);
  return trace.description();
}

}  // namespace latenz::trace
