// SPDX-License-Identifier: Apache-2.0
#include "measuring_thread.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "real_time.hpp"
#include "refusal.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t stack_bytes = 256UL * 1024;

/// Where this thread runs; costs no system call.
unsigned current_cpu() {
  const int cpu = sched_getcpu();
  return cpu < 0 || cpu >= CPU_SETSIZE ? 0 : static_cast<unsigned>(cpu);
}

/// Room for four seconds, in which the recording thread may be held up; at most 4 MiB a thread.
std::size_t ring_capacity(std::int64_t interval_ns) {
  constexpr std::int64_t held_up_ns = 4 * nanoseconds_a_second;
  constexpr std::int64_t fewest = 1024;
  constexpr std::int64_t most = 262'144;
  return static_cast<std::size_t>(std::clamp(held_up_ns / interval_ns, fewest, most));
}

/// The kernel's `struct sched_attr`; its header and glibc's sched.h exclude each other.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 6;  // SCHED_DEADLINE
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48, "SCHED_ATTR_SIZE_VER0");

std::string privilege_failure(const Plan& plan, int error) {
  if (plan.policy == Policy::deadline && error == EBUSY) {
    return "--policy deadline: the kernel refuses, the CPUs have no time left for it; use fewer "
           "threads";
  }
  const std::string option = "--policy " + std::string(name_of(plan.policy, policy_names)) + ": ";
  if (error == EPERM) {
    const int priority = has_priority(plan.policy) ? plan.priority : 0;
    return option + why_refused(read_rights(), priority) + "; or use --policy other";
  }
  return option + std::strerror(error);
}

}  // namespace

MeasuringThread::MeasuringThread(Shared& shared, std::size_t position)
    : shared_(shared),
      plan_(shared.plan),
      position_(position),
      cpu_(shared.plan.cpus[position]),
      samples_(ring_capacity(shared.plan.interval_ns)),
      late_(256 + 2 * shared.plan.worst),  // at first each wake-up is among the worst
      worst_(shared.plan.worst) {}

MeasuringThread::~MeasuringThread() {
  if (started_) {
    pthread_join(thread_, nullptr);
  }
}

void MeasuringThread::start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread_, &attributes, &MeasuringThread::enter, this);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    throw Failure(std::string("cannot start a thread: ") + std::strerror(error));
  }
  started_ = true;
  setup_error_.wait(-1);
  if (setup_error_ != 0) {
    throw Failure(privilege_failure(plan_, setup_error_));
  }
}

void MeasuringThread::nudge() const { pthread_kill(thread_, SIGUSR1); }

void* MeasuringThread::enter(void* self) {
  static_cast<MeasuringThread*>(self)->run();
  return nullptr;
}

void MeasuringThread::run() {
  prefault_stack();
  setup_error_ = take_cpu_and_policy();
  setup_error_.notify_one();
  shared_.start_ns.wait(0);
  const std::int64_t start_ns = shared_.start_ns;
  if (start_ns > 0) {
    measure(start_ns + plan_.offset_of(position_));
  }
  finished_.store(true, std::memory_order_release);
}

int MeasuringThread::take_cpu_and_policy() {
  if (plan_.policy == Policy::deadline) {
    return use_deadline_policy();
  }
  if (const int error = stay_on(cpu_); error != 0) {
    return error;
  }
  if (has_priority(plan_.policy)) {
    return take_policy(plan_.policy == Policy::rr ? SCHED_RR : SCHED_FIFO, plan_.priority);
  }
  prctl(PR_SET_TIMERSLACK, 1UL);  // the default would add up to 50 us that no scheduler caused
  if (plan_.policy == Policy::other) {
    return 0;
  }
  return take_policy(plan_.policy == Policy::batch ? SCHED_BATCH : SCHED_IDLE, 0);
}

/// The kernel refuses SCHED_DEADLINE to threads bound to a part of their root domain, as by a
/// shell's mask, so these threads run wherever it puts them. A fifth of the interval is theirs, far
/// more than they use.
int MeasuringThread::use_deadline_policy() const {
  if (const int error = stay_within(enterable_cpus()); error != 0) {
    return error;
  }
  const auto interval = static_cast<std::uint64_t>(plan_.interval_ns);
  SchedulingAttributes attributes;
  attributes.runtime_ns = interval / 5;
  attributes.deadline_ns = interval;
  attributes.period_ns = interval;
  return syscall(SYS_sched_setattr, 0, &attributes, 0U) == 0 ? 0 : errno;
}

/// The measured loop: no system call but the sleep, no memory but what is in place already.
void MeasuringThread::measure(std::int64_t start_ns) {
  const int clock = plan_.clock_id();
  const std::int64_t record_from_ns = start_ns + plan_.warm_up_ns;
  Activations activations(clock, start_ns, plan_.interval_ns);
  last_wakeup_ns_ = read_clock_ns(clock);
  start_counting(current_cpu());
  while (!shared_.stop.load(std::memory_order_relaxed)) {
    const auto activation = activations.next();
    if (!activation) {
      continue;  // a signal: see whether it means stop
    }
    const Sample sample{.t_ns = activation->due_ns, .latency_ns = activation->latency_ns};
    const unsigned cpu = current_cpu();  // others may have moved the thread
    if (sample.t_ns >= record_from_ns) {
      break_if_too_late(sample.latency_ns, cpu);
      record(sample, activation->skipped, cpu);
      if (at_end(*activation, activations.next_due_ns())) {
        return;
      }
    }
    start_counting(cpu);
    last_wakeup_ns_ = activation->running_ns();
  }
}

void MeasuringThread::start_counting(unsigned cpu) {
  last_cpu_ = cpu;
  last_counts_ = shared_.counters.read(cpu);
}

void MeasuringThread::break_if_too_late(std::int64_t latency_ns, unsigned cpu) {
  if (plan_.break_above_ns && latency_ns > *plan_.break_above_ns) {
    shared_.trace.stop(cpu, latency_ns);
    shared_.threshold_exceeded.store(true, std::memory_order_relaxed);
    shared_.stop.store(true, std::memory_order_relaxed);
  }
}

// Only this thread writes these counters, so a load and a store do; no locked instruction is
// needed.
void MeasuringThread::record(const Sample& sample, std::int64_t skipped, unsigned cpu) {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::int64_t n = n_.load(relaxed);
  if (n == 0) {
    end_ns_ = sample.t_ns + plan_.duration_ns.value_or(0);
    last_usage_ = own_usage(sample.t_ns);
  } else {
    const std::int64_t since = sample.t_ns - last_recorded_due_ns_;
    if (since != plan_.interval_ns) {
      missed_.store(missed_.load(relaxed) + since / plan_.interval_ns - 1, relaxed);
    }
  }
  last_recorded_due_ns_ = sample.t_ns;
  if (!samples_.push(sample)) {
    lost_.store(lost_.load(relaxed) + 1, relaxed);
  }
  if (sample.latency_ns < min_ns_.load(relaxed)) {
    min_ns_.store(sample.latency_ns, relaxed);
  }
  if (sample.latency_ns > max_ns_.load(relaxed)) {
    max_ns_.store(sample.latency_ns, relaxed);
  }
  if (worst_.admit(sample.latency_ns)) {
    note_late(sample, skipped, cpu);
  }
  taken_on_[cpu].store(taken_on_[cpu].load(relaxed) + 1, relaxed);
  n_.store(n + 1, relaxed);
}

void MeasuringThread::note_late(const Sample& sample, std::int64_t skipped, unsigned cpu) {
  const Counts counts = shared_.counters.read(cpu);
  const OwnUsage usage = own_usage(sample.t_ns + sample.latency_ns);
  LateWakeup late{};
  late.sample = sample;
  late.missed = skipped;
  late.since_ns = last_wakeup_ns_;
  late.cpu = cpu;
  late.cpu_before = last_cpu_;
  for (std::size_t kind = 0; kind < counter_kinds; ++kind) {
    late.counts[kind] = counts[kind] - last_counts_[kind];
  }
  if (shared_.counters.attached()) {
    const CpuCounters& last = shared_.counters.last(cpu);
    late.last_interrupt = last.last_interrupt;
    late.last_task = last.last_task;
    late.last_command = last.last_command;
  }
  late.own_since_ns = last_usage_.since_ns;
  late.involuntary_switches = usage.involuntary_switches - last_usage_.involuntary_switches;
  late.own_page_faults = usage.page_faults - last_usage_.page_faults;
  last_usage_ = usage;
  if (!late_.push(late)) {
    late_lost_.store(late_lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

MeasuringThread::OwnUsage MeasuringThread::own_usage(std::int64_t now_ns) {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {.since_ns = now_ns,
          .involuntary_switches = usage.ru_nivcsw,
          .page_faults = usage.ru_minflt + usage.ru_majflt};
}

bool MeasuringThread::at_end(const Activation& last, std::int64_t next_due_ns) {
  if (plan_.count) {
    return n_.load(std::memory_order_relaxed) >= *plan_.count;
  }
  return plan_.duration_ns && ending_.is_reached(last, next_due_ns, end_ns_);
}

}  // namespace latenz::probe
