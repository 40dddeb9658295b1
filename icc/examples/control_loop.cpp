// SPDX-License-Identifier: Apache-2.0
// A control loop of three programs that share nothing but memory, under Linux:
//   planner  publishes trajectories when it has them (Latest)
//   servo    once a millisecond asks the drive and gets what it measured (Exchange)
//   drive    on a processor of its own, waiting for the servo
// and how long the servo's request took until the drive's reply was there, against 30 us.
//
//   control_loop [--cycles N] [--csv FILE] [--real-time]      default: 5000 cycles, 5 s
//
// --real-time gives servo and drive SCHED_FIFO and locks their memory (needs the right to): the
// drive then keeps its processor to itself.
//
// `latenz import FILE -o RUN` and `latenz show RUN --deadline 30us` judge it. docs/icc-linux.md
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "control_parts.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "program.hpp"

namespace control {
namespace {

using latenz::icc::LinuxMemory;
using latenz::icc::MonotonicClock;
using latenz::icc::Result;
using program::give_up;
using program::opened_or_give_up;
using program::print;

constexpr std::int64_t cycle_ns = 1'000'000;
constexpr std::int64_t limit_ns = 30'000;
constexpr std::uint32_t points = 50;
constexpr const char* usage =
    "usage: control_loop [--cycles N] [--csv FILE] [--real-time], N of 1 to 10000000";

std::byte* at(const LinuxMemory& memory, std::size_t offset) {
  return static_cast<std::byte*>(memory.data()) + offset;
}

/// The first and the last processor that we may use; the same one if there is only one.
std::pair<int, int> two_processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) give_up("cannot tell processors");
  std::pair<int, int> found{-1, -1};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) found = {found.first < 0 ? cpu : found.first, cpu};
  }
  return found;
}

void stay_on(int cpu, bool real_time) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) give_up("cannot stay on a processor");
  const sched_param priority{.sched_priority = 80};
  if (real_time && (sched_setscheduler(0, SCHED_FIFO, &priority) != 0 ||
                    mlockall(MCL_CURRENT | MCL_FUTURE) != 0)) {
    give_up(std::string("--real-time: ") + std::strerror(errno));
  }
}

void sleep_until(std::int64_t time_ns) {
  const timespec time{.tv_sec = time_ns / 1'000'000'000, .tv_nsec = time_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

/// Plans a swing of the arm, a piece before each is needed, with an ordinary program's priority.
[[noreturn]] void plan(const LinuxMemory& memory) {
  auto trajectories = opened_or_give_up(
      Trajectories::Writer::create(at(memory, trajectories_offset), Trajectories::bytes, "plan"));
  const std::int64_t begin_ns = MonotonicClock::now_ns();
  for (std::uint32_t cycle = 0;; cycle += points / 2) {
    Trajectory& next = trajectories.begin_update();
    next.first_cycle = cycle;
    for (std::uint32_t point = 0; point < points; ++point) {
      next.angle[point] = std::sin(0.003F * static_cast<float>(cycle + point));
    }
    trajectories.publish();
    sleep_until(begin_ns + (std::int64_t{cycle} + points / 2) * cycle_ns);
  }
}

[[noreturn]] void serve(const LinuxMemory& memory, int cpu, bool real_time) {
  stay_on(cpu, real_time);
  auto server = opened_or_give_up(
      Drive::Server::attach_until(at(memory, drive_offset), Drive::bytes,
                                  latenz::icc::Until<MonotonicClock>::after(30'000'000'000)));
  static_cast<void>(drive(server));
  _exit(0);
}

struct Run {
  std::vector<std::int64_t> response_ns;  ///< of each cycle whose reply came
  std::uint32_t without_reply = 0;
  float last_error = 0;  ///< rad
};

Run control(const LinuxMemory& memory, std::uint32_t cycles, int cpu, bool real_time) {
  auto client =
      opened_or_give_up(Drive::Client::create(at(memory, drive_offset), Drive::bytes, "drive"));
  auto trajectories = opened_or_give_up(Trajectories::Reader::attach_until(
      at(memory, trajectories_offset), Trajectories::bytes,
      latenz::icc::Until<MonotonicClock>::after(30'000'000'000), 0));
  stay_on(cpu, real_time);
  Run run;
  run.response_ns.reserve(cycles);
  Servo servo;
  Measured measured{};
  const std::int64_t begin_ns = MonotonicClock::now_ns();
  for (std::uint32_t cycle = 0; cycle < cycles; ++cycle) {
    sleep_until(begin_ns + std::int64_t{cycle + 1} * cycle_ns);
    servo.follow(trajectories);
    const Command command = servo.next(cycle, measured);
    const std::int64_t asked_ns = MonotonicClock::now_ns();
    const Result result = client.call_until(
        command, measured, latenz::icc::Until<MonotonicClock>{asked_ns + cycle_ns / 2});
    const std::int64_t replied_ns = MonotonicClock::now_ns();
    if (result == Result::ok) {
      run.response_ns.push_back(replied_ns - asked_ns);
    } else {
      ++run.without_reply;
    }
  }
  run.last_error = servo.target(cycles - 1) - measured.angle;
  client.close();
  return run;
}

void report(const Run& run) {
  std::vector<std::int64_t> sorted = run.response_ns;
  std::ranges::sort(sorted);
  const auto exceeding =
      static_cast<std::size_t>(sorted.end() - std::ranges::upper_bound(sorted, limit_ns));
  print(stdout, "sensor request to actuator reply: n " + std::to_string(sorted.size()) +
                    ", without reply in half a cycle " + std::to_string(run.without_reply) + "\n");
  if (!sorted.empty()) {
    std::string line;
    for (const auto& [name, per_mille] :
         {std::pair{"p50", 500U}, std::pair{"p99", 990U}, std::pair{"p99.9", 999U}}) {
      const std::size_t rank = (sorted.size() * per_mille + 999) / 1000;
      line += std::string(name) + " " + std::to_string(sorted[std::max<std::size_t>(rank, 1) - 1]) +
              " ns, ";
    }
    print(stdout, line + "max " + std::to_string(sorted.back()) + " ns\n");
  }
  print(stdout, "above " + std::to_string(limit_ns) + " ns: " + std::to_string(exceeding) + " of " +
                    std::to_string(sorted.size()) + "\n");
  print(stdout, "arm behind its trajectory: " + std::to_string(run.last_error) + " rad\n");
}

void write_csv(const Run& run, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) give_up(path + ": cannot be written: " + std::strerror(errno));
  print(file, "response_ns\n");
  for (const std::int64_t response_ns : run.response_ns) {
    print(file, std::to_string(response_ns) + "\n");
  }
  if (std::fclose(file) != 0) give_up(path + ": cannot be written: " + std::strerror(errno));
}

std::uint32_t cycles_of(const char* text) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || number == 0 || number > 10'000'000) give_up(usage);
  return static_cast<std::uint32_t>(number);
}

struct Options {
  std::uint32_t cycles = 5000;
  std::string csv;
  bool real_time = false;
};

Options read_options(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--real-time") {
      options.real_time = true;
    } else if (arguments[i] == "--cycles" && has_value) {
      options.cycles = cycles_of(arguments[++i].c_str());
    } else if (arguments[i] == "--csv" && has_value) {
      options.csv = arguments[++i];
    } else {
      give_up(usage);
    }
  }
  return options;
}

int run_all(const Options& options) {
  const std::string name = "/latenz-control-" + std::to_string(getpid());
  const LinuxMemory memory = LinuxMemory::create_shared(name.c_str(), shared_bytes);
  if (!memory) give_up(memory.problem());
  const auto [servos_cpu, drives_cpu] = two_processors();
  if (servos_cpu == drives_cpu) print(stderr, "control_loop: one processor only: slow\n");
  const pid_t planner = fork();
  if (planner == 0) plan(memory);
  const pid_t driver = fork();
  if (driver == 0) serve(memory, drives_cpu, options.real_time);
  const Run run = control(memory, options.cycles, servos_cpu, options.real_time);
  LinuxMemory::remove_shared(name.c_str());
  kill(planner, SIGKILL);
  waitpid(planner, nullptr, 0);
  waitpid(driver, nullptr, 0);
  report(run);
  if (!options.csv.empty()) write_csv(run, options.csv);
  return 0;
}

}  // namespace
}  // namespace control

int main(int count, char** arguments) {
  return control::run_all(control::read_options({arguments + 1, arguments + std::max(count, 1)}));
}
