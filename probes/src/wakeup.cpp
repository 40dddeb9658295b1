// SPDX-License-Identifier: Apache-2.0
// latenz-wakeup: measures how late threads wake up. docs/probe.md says how and what it means.
#include "wakeup.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "clock_mark.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "measuring_thread.hpp"
#include "options.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "real_time.hpp"
#include "recording.hpp"
#include "recording_process.hpp"

namespace latenz::probe {
namespace {

constexpr std::int64_t drain_every_ns = 50'000'000;  // a kill loses no more than this and a frame
constexpr std::int64_t progress_every_ns = 500'000'000;
constexpr std::int64_t account_every_ns = 1'000'000'000;
constexpr std::int64_t start_delay_ns = 20'000'000;  // until every thread sleeps for its first time

void prepare_signals() {
  struct sigaction nudge{};
  nudge.sa_handler = [](int) {};
  sigaction(SIGUSR1, &nudge, nullptr);
  ignore_output_signals();
}

class Run {
 public:
  explicit Run(Plan plan) { shared_.plan = std::move(plan); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() { end_threads(); }

  int perform();

 private:
  void prepare();
  void start();
  void watch(const sigset_t& ending);
  void look_after(std::int64_t now_ns);
  void end_threads();
  void fail(int error);
  void print_progress(std::int64_t now_ns) const;
  [[nodiscard]] bool all_finished() const;
  [[nodiscard]] int close_account();

  Shared shared_;
  std::vector<std::unique_ptr<MeasuringThread>> threads_;
  std::unique_ptr<Recording> recording_;
  File dma_latency_;
  std::int64_t started_ns_ = 0;
  std::int64_t next_progress_ns_ = 0;
  std::int64_t next_account_ns_ = 0;
  int ending_signal_ = 0;
  int output_error_ = 0;
};

int Run::perform() {
  const sigset_t ending = block_ending_signals();
  prepare_signals();
  prepare();
  start();
  watch(ending);
  end_threads();
  return close_account();
}

void Run::prepare() {
  const Plan& plan = shared_.plan;
  if (plan.break_above_ns) {
    shared_.trace = TraceStopper(plan.trace_instance, plan.trace_snapshot);
  }
  if (plan.context == Context::exact && plan.worst > 0) {
    // Refusal is not a failure: the account says which context it holds.
    static_cast<void>(shared_.counters.attach());
  }
  for (std::size_t i = 0; i < plan.cpus.size(); ++i) {
    threads_.push_back(std::make_unique<MeasuringThread>(shared_, i));
    threads_.back()->start();
  }
  recording_ = std::make_unique<Recording>(shared_, threads_);
}

void Run::start() {
  leave_measured_cpus(shared_.plan.cpus);
  Circumstances circumstances;
  const auto& latency_us = shared_.plan.dma_latency_us;
  circumstances.dma_latency = latency_us ? hold_dma_latency(*latency_us, dma_latency_) : "off";
  circumstances.memory_locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
  circumstances.started_realtime_ns = read_clock_ns(CLOCK_REALTIME);
  recording_->set_circumstances(circumstances);
  if (const int error = recording_->save_account("running"); error != 0) {
    throw Failure((shared_.plan.output / "probe.json").string() + ": " + std::strerror(error) +
                  "; make room or name another folder");
  }
  started_ns_ = read_clock_ns(CLOCK_MONOTONIC) + start_delay_ns + shared_.plan.warm_up_ns;
  shared_.start_ns = read_clock_ns(shared_.plan.clock_id()) + start_delay_ns;
  shared_.start_ns.notify_all();
}

void Run::watch(const sigset_t& ending) {
  const timespec drain_every = to_timespec(drain_every_ns);
  while (!all_finished() && ending_signal_ == 0 && output_error_ == 0 &&
         !shared_.threshold_exceeded.load(std::memory_order_relaxed)) {
    ending_signal_ = std::max(0, sigtimedwait(&ending, nullptr, &drain_every));
    look_after(read_clock_ns(CLOCK_MONOTONIC));
  }
}

void Run::look_after(std::int64_t now_ns) {
  fail(recording_->drain());
  if (now_ns >= next_account_ns_) {
    next_account_ns_ = now_ns + account_every_ns;
    recording_->watch_clocks();
    fail(recording_->save_account("running"));
  }
  if (shared_.plan.progress && now_ns >= next_progress_ns_) {
    next_progress_ns_ = now_ns + progress_every_ns;
    print_progress(now_ns);
  }
}

void Run::fail(int error) {
  if (output_error_ == 0) {
    output_error_ = error;
  }
}

void Run::print_progress(std::int64_t now_ns) const {
  const auto total_ns = shared_.plan.total_ns();
  const auto max_ns = recording_->max_ns();
  Json json;
  json.open_object().member("elapsed_ns", std::max<std::int64_t>(0, now_ns - started_ns_));
  json.key("total_ns");
  total_ns ? json.value(*total_ns) : json.null();
  json.member("n", recording_->n()).key("max_ns");
  max_ns ? json.value(*max_ns) : json.null();
  print(stderr, json.close_object().text() + "\n");
}

bool Run::all_finished() const {
  return std::ranges::all_of(threads_, [](const auto& thread) { return thread->finished(); });
}

/// A signal that comes just before a thread falls asleep is lost on it, so they are repeated.
void Run::end_threads() {
  shared_.stop.store(true, std::memory_order_relaxed);
  if (shared_.start_ns == 0) {
    shared_.start_ns = -1;
    shared_.start_ns.notify_all();
    return;
  }
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  while (!all_finished()) {
    for (const auto& thread : threads_) {
      thread->nudge();
    }
    nanosleep(&pause, nullptr);
  }
}

int Run::close_account() {
  fail(recording_->finish());
  recording_->free_reserve();
  std::string status = "complete";
  int exit_code = 0;
  if (output_error_ != 0) {
    status = status_of_output(output_error_);
    exit_code = exit_output_failed;
  } else if (shared_.threshold_exceeded) {
    status = "threshold";
    exit_code = exit_threshold;
  } else if (ending_signal_ != 0) {
    status = "interrupted";
    exit_code = 128 + ending_signal_;
  }
  const int error = recording_->save_account(status);
  if (output_error_ != 0 || error != 0) {
    const int reason = output_error_ != 0 ? output_error_ : error;
    print(stderr, told_output_error("latenz-wakeup", shared_.plan.output, reason));
    return exit_output_failed;
  }
  return exit_code;
}

}  // namespace

int measure_wakeups(std::span<const char* const> arguments) {
  Plan plan = parse_plan(arguments);
  if (plan.help || plan.version) {
    print(stdout, plan.help ? plan_help() : "latenz-wakeup " LATENZ_VERSION "\n");
    return 0;
  }
  if (plan.mark_clock) {
    mark_clocks();
    return 0;
  }
  return Run(std::move(plan)).perform();
}

}  // namespace latenz::probe
