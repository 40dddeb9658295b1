// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>

#include "failure.hpp"
#include "options.hpp"

namespace latenz::probe {
namespace {

constexpr std::int64_t longest_ns = 1'000'000'000'000'000'000;  // 31 years: sums stay in 64 bits
constexpr std::int64_t longest_interval_ns = 3'600'000'000'000;
constexpr std::int64_t shortest_interval_ns = 10'000;

template <typename Choice>
auto choose(std::string_view name, Choice& target, std::span<const std::string_view> names) {
  return [name, &target, names](std::string_view text) {
    target = static_cast<Choice>(parse_choice(name, text, names));
  };
}

auto number(std::string_view name, auto& target, std::int64_t lowest, std::int64_t highest) {
  return [name, &target, lowest, highest](std::string_view text) {
    const std::int64_t value = parse_integer(name, text, lowest, highest);
    if constexpr (std::is_arithmetic_v<std::remove_reference_t<decltype(target)>>) {
      target = static_cast<std::remove_reference_t<decltype(target)>>(value);
    } else {
      target = value;
    }
  };
}

auto flag(bool& target) {
  return [&target](std::string_view /*none*/) { target = true; };
}

void set_trace_instance(Plan& plan, std::string_view text) {
  const bool plain = !text.empty() && text.front() != '.' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
  if (!plain) {
    throw Failure("--trace-instance: '" + std::string(text) +
                  "' is not a name; use letters, digits, '_', '-' and '.'");
  }
  plan.trace_instance = text;
}

std::vector<Option> options_of(Plan& plan, std::optional<std::string>& cpus) {
  const auto most_count = std::numeric_limits<std::int64_t>::max() / longest_interval_ns;
  return {
      {"--output", "DIR", "folder for the recording; must not hold one already (required)",
       [&plan](std::string_view text) { plan.output = text; }},
      {"--cpus", "LIST",
       "one thread for each CPU named, such as 0,2-3 (default: each that can be entered, isolated "
       "ones, too)",
       [&cpus](std::string_view text) { cpus = text; }},
      {"--interval", "NS", "distance of the due times of a thread (default: 1000000)",
       number("--interval", plan.interval_ns, shortest_interval_ns, longest_interval_ns)},
      {"--duration", "NS", "end after this time (default: run until SIGINT or SIGTERM)",
       number("--duration", plan.duration_ns, 1, longest_ns)},
      {"--count", "N", "end after this many samples of each thread",
       number("--count", plan.count, 1, most_count)},
      {"--warm-up", "NS", "activations before the recording starts (default: 100000000)",
       number("--warm-up", plan.warm_up_ns, 0, longest_ns)},
      {"--offset", "NS", "start of each thread after the one before (default: spread evenly)",
       number("--offset", plan.offset_ns, 0, longest_interval_ns)},
      {"--policy", "NAME", "fifo, rr, deadline, other, batch or idle (default: fifo)",
       choose("--policy", plan.policy, policy_names)},
      {"--priority", "N", "priority of fifo and rr, 1 to 99 (default: 80)",
       number("--priority", plan.priority, 1, 99)},
      {"--clock", "NAME", "monotonic or realtime (default: monotonic)",
       choose("--clock", plan.clock, clock_names)},
      {"--dma-latency", "NS",
       "held in /dev/cpu_dma_latency, 0 keeps CPUs awake (default: off, it is left alone)",
       [&plan](std::string_view text) { plan.dma_latency_us = parse_dma_latency(text); }},
      {"--keep", "WHAT",
       "samples: every one; histogram: bounded memory and disk (default: samples)",
       choose("--keep", plan.keep, keep_names)},
      {"--worst", "N", "latest wake-ups of each thread to keep with context (default: 10)",
       number("--worst", plan.worst, 0, 1000)},
      {"--context", "HOW", "exact: BPF counters where permitted; window: /proc (default: exact)",
       choose("--context", plan.context, context_names)},
      {"--break-above", "NS", "stop tracing and end at the first wake-up later than this",
       number("--break-above", plan.break_above_ns, 0, longest_ns)},
      {"--trace-instance", "NAME", "tracefs instance to stop (default: the top one)",
       [&plan](std::string_view text) { set_trace_instance(plan, text); }},
      {"--trace-snapshot", "", "also take an ftrace snapshot", flag(plan.trace_snapshot)},
      {"--progress", "", "a JSON line on standard error twice a second", flag(plan.progress)},
      {"--mark-clock", "",
       "measure nothing; mark in the kernel's trace how its clock and the time-stamp counter go "
       "together",
       flag(plan.mark_clock)},
      {"--help", "", "print this text", flag(plan.help)},
      {"--version", "", "print the version", flag(plan.version)},
  };
}

void check(const Plan& plan) {
  if (plan.output.empty()) {
    throw Failure("--output: is missing; name a folder for the recording");
  }
  if (plan.duration_ns && plan.count) {
    throw Failure("--count: contradicts --duration; give one of them");
  }
  if (!plan.break_above_ns && (plan.trace_snapshot || !plan.trace_instance.empty())) {
    throw Failure("--break-above: is missing; without it no trace is stopped");
  }
}

}  // namespace

std::optional<std::int32_t> parse_dma_latency(std::string_view text) {
  constexpr std::int64_t microsecond = 1000;
  if (text == "off") {
    return std::nullopt;
  }
  const std::int64_t value = parse_integer("--dma-latency", text, 0,
                                           std::numeric_limits<std::int32_t>::max() * microsecond);
  if (value % microsecond != 0) {
    throw Failure("--dma-latency: the kernel takes whole microseconds; write a multiple of 1000");
  }
  return static_cast<std::int32_t>(value / microsecond);
}

int Plan::clock_id() const { return clock == Clock::monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME; }

std::int64_t Plan::offset_of(std::size_t thread) const {
  const auto position = static_cast<std::int64_t>(thread);
  if (offset_ns) {
    return position * *offset_ns;
  }
  return position * interval_ns / static_cast<std::int64_t>(cpus.size());
}

std::optional<std::int64_t> Plan::total_ns() const {
  return count ? std::optional(*count * interval_ns) : duration_ns;
}

Plan parse_plan(std::span<const char* const> arguments) {
  Plan plan;
  std::optional<std::string> cpus;
  parse_options(options_of(plan, cpus), arguments);
  if (plan.help || plan.version || plan.mark_clock) {
    return plan;
  }
  check(plan);
  plan.cpus = chosen_cpus("--cpus", cpus);
  return plan;
}

std::string plan_help() {
  Plan plan;
  std::optional<std::string> cpus;
  return help_text("latenz-wakeup", R"(
Measures how late threads wake up: each sleeps until its due time on its own CPU and reads the
clock when it runs. Keeps every sample, counts every activation skipped because one was late.
All times are integers in nanoseconds.

Exit code: 0 complete; 1 ended by --break-above; 2 wrong usage or missing privilege; 4 disk full or
not writable; 128 + signal (130, 143) ended by a signal. All samples taken are kept in each case.
)",
                   options_of(plan, cpus));
}

std::vector<std::string> thread_folders(const Plan& plan) {
  std::map<unsigned, int> uses;
  std::vector<std::string> folders;
  for (const unsigned cpu : plan.cpus) {
    if (!plan.is_pinned()) {
      folders.push_back("thread" + std::to_string(folders.size()));
      continue;
    }
    const int use = ++uses[cpu];
    folders.push_back("cpu" + std::to_string(cpu) + (use > 1 ? "-" + std::to_string(use) : ""));
  }
  return folders;
}

}  // namespace latenz::probe
