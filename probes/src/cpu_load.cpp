// SPDX-License-Identifier: Apache-2.0
#include "cpu_load.hpp"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "affinity.hpp"
#include "clock.hpp"
#include "json.hpp"
#include "options.hpp"
#include "program.hpp"
#include "real_time.hpp"
#include "recording_process.hpp"

namespace latenz::probe {
namespace {

struct SpinPlan {
  std::optional<std::string> cpus;
  bool help = false;
  bool version = false;
};

std::vector<Option> options_of(SpinPlan& plan) {
  return {
      {"--cpus", "LIST",
       "one thread for each CPU named, such as 0,2-3 (default: those it was put on)",
       [&plan](std::string_view text) { plan.cpus = text; }},
      {"--help", "", "print this text", [&plan](std::string_view /*none*/) { plan.help = true; }},
      {"--version", "", "print the version",
       [&plan](std::string_view /*none*/) { plan.version = true; }},
  };
}

std::string cpu_load_help() {
  SpinPlan plan;
  return help_text("latenz-cpu-load", R"(
Computes without touching memory, one thread a CPU, until SIGINT or SIGTERM comes; then prints the
CPU time that it got as JSON.

Exit code: 0 when ended by SIGINT or SIGTERM; 2 wrong usage.
)",
                   options_of(plan));
}

struct Spinner {
  unsigned cpu = 0;
  std::int64_t cpu_time_ns = 0;
  std::uint64_t rounds = 0;
  std::uint64_t result = 0;  ///< so that computing cannot be left out
};

void spin(Spinner& spinner, const std::atomic<bool>& stop) {
  static_cast<void>(stay_on(spinner.cpu));  // it is one of those that can be entered
  constexpr int steps_a_round = 4096;
  std::uint64_t state = spinner.cpu + 1;
  while (!stop.load(std::memory_order_relaxed)) {
    for (int step = 0; step < steps_a_round; ++step) {  // xorshift64
      state ^= state << 13U;
      state ^= state >> 7U;
      state ^= state << 17U;
    }
    ++spinner.rounds;
  }
  spinner.result = state;
  spinner.cpu_time_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

std::string result(const std::list<Spinner>& spinners, std::int64_t duration_ns) {
  Json json;
  json.open_object().member("version", 1).member("program", "latenz-cpu-load");
  json.member("program_version", LATENZ_VERSION).member("duration_ns", duration_ns);
  json.key("threads").open_array();
  for (const Spinner& each : spinners) {
    json.open_object().member("cpu", each.cpu).member("cpu_time_ns", each.cpu_time_ns);
    json.member("rounds", each.rounds).member("result", std::to_string(each.result));
    json.close_object();
  }
  return json.close_array().close_object().text() + "\n";
}

}  // namespace

int load_cpus(std::span<const char* const> arguments) {
  SpinPlan plan;
  parse_options(options_of(plan), arguments);
  if (plan.help || plan.version) {
    print(stdout, plan.help ? cpu_load_help() : "latenz-cpu-load " LATENZ_VERSION "\n");
    return 0;
  }
  // A load does not go to isolated CPUs unless it is sent there.
  const auto cpus = plan.cpus ? chosen_cpus("--cpus", plan.cpus) : cpus_of(inherited_cpus());
  const sigset_t ending = block_ending_signals();
  std::list<Spinner> spinners;
  for (const unsigned cpu : cpus) spinners.push_back({.cpu = cpu});
  std::atomic<bool> stop{false};
  const std::int64_t begin_ns = read_clock_ns(CLOCK_MONOTONIC);
  {
    std::vector<std::jthread> threads;
    threads.reserve(spinners.size());
    for (Spinner& spinner : spinners) {
      threads.emplace_back([&spinner, &stop] { spin(spinner, stop); });
    }
    int number = 0;
    sigwait(&ending, &number);
    stop = true;
  }
  print(stdout, result(spinners, read_clock_ns(CLOCK_MONOTONIC) - begin_ns));
  return 0;
}

}  // namespace latenz::probe
