// SPDX-License-Identifier: Apache-2.0
#include "real_time.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "affinity.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t prefaulted_stack_bytes = 64UL * 1024;

}  // namespace

void prefault_stack() {
  std::array<volatile char, prefaulted_stack_bytes> pages;  // NOLINT(*-member-init): written below
  constexpr std::size_t page = 4096;
  for (std::size_t i = 0; i < pages.size(); i += page) {
    pages[i] = 0;
  }
}

int stay_on(unsigned cpu) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpu, &own);
  return stay_within(own);
}

int take_policy(int policy, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  // Not pthread_setschedparam, which knows no SCHED_BATCH and no SCHED_IDLE; nor the C library's
  // sched_setscheduler, which in musl always fails: POSIX means processes by it. 0 is this thread.
  return syscall(SYS_sched_setscheduler, 0, policy, &parameters) == 0 ? 0 : errno;
}

std::string_view hold_dma_latency(std::int32_t latency_us, File& file) {
  file = File::open("/dev/cpu_dma_latency", O_WRONLY);
  if (!file.is_open()) {
    return errno == ENOENT ? "absent" : "denied";
  }
  const bool held = write(file.descriptor(), &latency_us, sizeof latency_us) == sizeof latency_us;
  return held ? "held" : "denied";
}

}  // namespace latenz::probe
