// SPDX-License-Identifier: Apache-2.0
#include "affinity.hpp"

#include <pthread.h>

#include <cstring>
#include <thread>

#include "failure.hpp"

namespace latenz::probe {

cpu_set_t inherited_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    throw Failure("--cpus: this machine has more than 1024 CPUs; start with taskset on fewer");
  }
  return set;
}

cpu_set_t enterable_cpus() {
  cpu_set_t found = inherited_cpus();
  // A thread of its own has a mask of its own, so that nothing need be put back.
  std::thread([&found] {
    cpu_set_t every;
    std::memset(&every, 0xFF, sizeof every);
    cpu_set_t entered;
    CPU_ZERO(&entered);
    // The kernel takes from the mask what a cpuset forbids; a filter may forbid the call.
    if (stay_within(every) == 0 && sched_getaffinity(0, sizeof entered, &entered) == 0) {
      found = entered;
    }
  }).join();
  return found;
}

std::vector<unsigned> cpus_of(const cpu_set_t& set) {
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

int stay_within(const cpu_set_t& cpus) {
  return pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
}

}  // namespace latenz::probe
