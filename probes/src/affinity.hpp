// SPDX-License-Identifier: Apache-2.0
// Which CPUs a process can enter, which may be more than those it was put on.
#pragma once

#include <sched.h>

#include <vector>

namespace latenz::probe {

/// The CPUs that this process can enter. isolcpus=, CPUAffinity= and taskset only say where
/// programs start; what keeps them from a CPU is a cpuset, or that the CPU is offline. Found by
/// trying.
[[nodiscard]] cpu_set_t enterable_cpus();

/// The CPUs that this process was put on.
[[nodiscard]] cpu_set_t inherited_cpus();

/// The CPUs of a set, ascending.
[[nodiscard]] std::vector<unsigned> cpus_of(const cpu_set_t& set);

/// Lets the calling thread run on a set of CPUs; returns 0 or the errno value.
[[nodiscard]] int stay_within(const cpu_set_t& cpus);

}  // namespace latenz::probe
