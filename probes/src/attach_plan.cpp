// SPDX-License-Identifier: Apache-2.0
#include "attach_plan.hpp"

#include <limits>

#include "failure.hpp"
#include "options.hpp"

namespace latenz::attach {
namespace {

using probe::Failure;
using probe::Option;

constexpr std::int64_t longest_ns = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t highest_pid = 1 << 22;  // PID_MAX_LIMIT
constexpr std::int64_t most_worst = 100;

std::vector<std::int32_t> parse_numbers(std::string_view name, std::string_view text) {
  std::vector<std::int32_t> found;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    found.push_back(static_cast<std::int32_t>(
        probe::parse_integer(name, text.substr(0, comma), 1, highest_pid)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return found;
}

std::vector<Option> options_of(Plan& plan) {
  return {
      {"--output", "DIR", "Folder for attach.json and one folder for each periodic thread.",
       [&](std::string_view text) { plan.output = text; }},
      {"--processes", "LIST", "Numbers of the processes whose threads are measured, such as 12,15.",
       [&](std::string_view text) { plan.processes = parse_numbers("--processes", text); }},
      {"--threads", "LIST", "Numbers of threads: measure only these.",
       [&](std::string_view text) { plan.threads = parse_numbers("--threads", text); }},
      {"--thread-names", "GLOB", "Measure only threads whose names match, such as 'rt*'.",
       [&](std::string_view text) { plan.glob = text; }},
      {"--begin", "PLACE",
       "Where a cycle begins: PROGRAM:FUNCTION, PROGRAM:FUNCTION%return or"
       " PROGRAM:PROVIDER:PROBE; only threads that come there are measured.",
       [&](std::string_view text) { plan.begins = {parse_place("--begin", text)}; }},
      {"--end", "PLACE", "Where a cycle ends, written like --begin.",
       [&](std::string_view text) { plan.ends = {parse_place("--end", text)}; }},
      {"--duration", "NS",
       "How long to measure from the first cycle on; 0, the default: until a"
       " signal, or until all threads have ended.",
       [&](std::string_view text) {
         plan.duration_ns = probe::parse_integer("--duration", text, 0, longest_ns);
       }},
      {"--learning", "NS", "The longest time in which a period must show itself (10 s).",
       [&](std::string_view text) {
         plan.learning_ns = probe::parse_integer("--learning", text, 1, longest_ns);
       }},
      {"--worst", "N", "How many of the worst cycles of each thread to keep whole (10).",
       [&](std::string_view text) {
         plan.worst =
             static_cast<std::size_t>(probe::parse_integer("--worst", text, 0, most_worst));
       }},
      {"--count-cost", "", "Have the kernel account for our programs, which itself costs time.",
       [&](std::string_view) { plan.count_cost = true; }},
      {"--trace", "FILE",
       "Read a recorded trace instead of the running kernel; without"
       " --processes, --threads and --thread-names every periodic thread in it.",
       [&](std::string_view text) { plan.trace = text; }},
      {"--help", "", "Print this text.", [&](std::string_view) { plan.help = true; }},
      {"--version", "", "Print the version.", [&](std::string_view) { plan.version = true; }},
  };
}

}  // namespace

Plan parse_plan(std::span<const char* const> arguments) {
  Plan plan;
  probe::parse_options(options_of(plan), arguments);
  if (plan.help || plan.version) return plan;
  if (plan.output.empty()) {
    throw Failure("--output: is missing; name a folder for the recording");
  }
  if (plan.trace.empty() && plan.processes.empty()) {
    throw Failure("--processes: is missing; name those whose threads are to be measured");
  }
  return plan;
}

std::string plan_help() {
  Plan plan;
  return probe::help_text("latenz-attach", R"(
Measures how late the cycles of a running program's threads are, without changing the program:
finds its periodic threads by their wake-ups and records each cycle (due, woken, running, done).
All times are integers in nanoseconds.

Exit code: 0 complete, also if the threads ended; 2 wrong usage, missing privilege, or nothing
periodic; 4 disk full or not writable; 128 + signal (130, 143) ended by a signal. All cycles
recorded are kept in each case.
)",
                          options_of(plan));
}

}  // namespace latenz::attach
