// SPDX-License-Identifier: Apache-2.0
// What the dispatcher answers. Freestanding.
#pragma once

#include <cstdint>

#include "dispatcher_plan.hpp"
#include "latenz/handling.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

/// What a top handler decided.
struct Top {
  Handling handling = Handling::direct;
  bool asked = false;     ///< the monitor was
  bool accepted = false;  ///< by the monitor
};

/// A bottom handler that has ended.
struct Finished {
  bool any = false;  ///< otherwise there was none to end, and nothing has changed
  Handling handling = Handling::direct;
  bool timed = false;  ///< otherwise the arrival was not kept: times are those of its queueing
  std::uint16_t source = 0;
  Instant arrival;
  Instant top_start;
  Duration latency;  ///< from the arrival
};

/// What is to be done now.
struct Next {
  PartitionIndex partition = nobody;        ///< runs; nobody: nothing does, or a job has ended
  bool interposed = false;                  ///< in a job, for `budget`
  bool job_started = false;                 ///< C_sched + C_ctx are due
  bool job_ended = false;                   ///< C_ctx is due
  bool overrun = false;                     ///< it ended in the middle of a bottom handler
  std::uint16_t job_source = 0;             ///< of the job: the source that it was granted to
  Duration budget = Duration::unbounded();  ///< execution time

  /// Nothing has changed: the partition may run.
  [[nodiscard]] bool settled() const { return !job_started && !job_ended; }
};

}  // namespace latenz::hypervisor
