// SPDX-License-Identifier: Apache-2.0
// A recorded trace in place of the running kernel.
#include <algorithm>
#include <utility>

#include "attach_session.hpp"
#include "attach_trace.hpp"
#include "recording_process.hpp"
#include "trace_read.hpp"

namespace latenz::attach {

int Session::read_trace() {
  probe::create_folder(plan_.output);
  account_.source = "trace";
  const trace::FileSource file(plan_.trace);
  std::int64_t first_ns = 0;
  const auto wanted = [this](std::int32_t tid, std::string_view comm) {
    const bool is_named =
        plan_.threads.empty() || std::ranges::find(plan_.threads, tid) != plan_.threads.end();
    const bool is_of_process =
        plan_.processes.empty() || std::ranges::find(plan_.processes, tid) != plan_.processes.end();
    if (!is_named || !is_of_process) {
      return false;
    }
    Identity& identity = identities_[tid];
    identity.pid = tid;
    if (!comm.empty()) identity.comm = comm;
    builder_.watch(tid, false);
    return true;
  };
  const auto take_first = [&](const Event& event) {
    if (first_ns == 0) first_ns = event.t_ns;
    take(event);
  };
  const auto missing = [this] { builder_.lost(); };
  // What is periodic is known in the end only; with that knowledge the trace is read once more.
  TraceEvents learning(wanted, take_first, missing);
  static_cast<void>(trace::read_trace(file, learning, false, false));
  std::vector<std::pair<std::int32_t, Grid>> grids;
  for (const auto& [tid, thread] : builder_.threads()) {
    if (thread->grid() != nullptr) {
      grids.emplace_back(tid, *thread->grid());
    }
  }
  builder_ = CycleBuilder(plan_.worst);
  for (const auto& [tid, grid] : grids) builder_.watch(tid, false).set_grid(grid, first_ns);
  begin_recordings();
  TraceEvents events(wanted, [this](const Event& event) { take(event); }, missing);
  const trace::Description description = trace::read_trace(file, events, false, false);
  account_.clock = description.clock;
  account_.lost = events.lost_places();
  account_.notes = description.notes;
  if (!events.has_timers()) {
    account_.notes.emplace_back(
        "the trace has no timers (timer:hrtimer_start): latencies count from the waking");
  } else if (events.is_other_clock()) {
    account_.notes.emplace_back(
        "the trace's clock is not the timers' (record with -C mono): due times are inferred");
  }
  if (!description.truncated_at.empty()) {
    account_.notes.push_back("the trace is damaged: " + description.truncated_at);
  }
  return end(0);
}

}  // namespace latenz::attach
