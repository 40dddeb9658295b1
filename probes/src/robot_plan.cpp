// SPDX-License-Identifier: Apache-2.0
#include "robot_plan.hpp"

#include <array>
#include <vector>

#include "failure.hpp"
#include "options.hpp"

namespace latenz::robot {
namespace {

using probe::Failure;
using probe::Option;
using probe::parse_choice;
using probe::parse_integer;

constexpr std::int64_t longest_ns = 1'000'000'000'000'000'000;  // 31 years: sums stay in 64 bits
constexpr std::array<std::string_view, 2> policies{"fifo", "other"};
constexpr std::array<std::string_view, 2> memories{"locked", "pageable"};

std::vector<Option> options_of(RobotPlan& plan, std::string& cpu) {
  return {
      {"--output", "DIR", "folder for the recording; must not hold one already (required)",
       [&plan](std::string_view text) { plan.output = text; }},
      {"--joints", "N", "joints of the robot, 1 to 6 (default: 6)",
       [&plan](std::string_view text) {
         plan.servo.joints =
             static_cast<std::size_t>(parse_integer("--joints", text, 1, most_joints));
       }},
      {"--interval", "NS", "period of the servo, 100000 to 4000000 (default: 1000000)",
       [&plan](std::string_view text) {
         plan.servo.interval_ns = parse_integer("--interval", text, 100'000, 4'000'000);
       }},
      {"--duration", "NS", "end after this time (default: run until SIGINT or SIGTERM)",
       [&plan](std::string_view text) {
         plan.duration_ns = parse_integer("--duration", text, 1, longest_ns);
       }},
      {"--warm-up", "NS", "cycles before the recording starts (default: 500000000)",
       [&plan](std::string_view text) {
         plan.warm_up_ns = parse_integer("--warm-up", text, 0, longest_ns);
       }},
      {"--cpu", "N",
       "CPU that the servo stays on, or 'any' (default: the last that can be entered)",
       [&cpu](std::string_view text) { cpu = text; }},
      {"--policy", "NAME", "of the servo: fifo or other (default: fifo)",
       [&plan](std::string_view text) {
         plan.policy = parse_choice("--policy", text, policies) == 0 ? probe::Policy::fifo
                                                                     : probe::Policy::other;
       }},
      {"--priority", "N", "priority of fifo, 1 to 99 (default: 80)",
       [&plan](std::string_view text) {
         plan.priority = static_cast<int>(parse_integer("--priority", text, 1, 99));
       }},
      {"--memory", "HOW", "locked or pageable (default: locked)",
       [&plan](std::string_view text) {
         plan.locked = parse_choice("--memory", text, memories) == 0;
       }},
      {"--dma-latency", "NS",
       "held in /dev/cpu_dma_latency, 0 keeps CPUs awake (default: off, it is left alone)",
       [&plan](std::string_view text) { plan.dma_latency_us = probe::parse_dma_latency(text); }},
      {"--stale", "NS",
       "set-points older than this stop the robot, 20000000 to 120000000 (default: 100000000)",
       [&plan](std::string_view text) {
         plan.servo.stale_ns = parse_integer("--stale", text, 2 * knot_ns, 12 * knot_ns);
       }},
      {"--most-missed", "N", "more cycles missed at once stop it, too, 0 to 1000 (default: 20)",
       [&plan](std::string_view text) {
         plan.servo.most_missed = parse_integer("--most-missed", text, 0, 1000);
       }},
      {"--simulate", "FILE",
       "virtual time: instants from a CSV file (due_ns,activation_ns,completion_ns), every cycle "
       "of each joint as CSV on standard output",
       [&plan](std::string_view text) { plan.simulate = text; }},
      {"--help", "", "print this text", [&plan](std::string_view /*none*/) { plan.help = true; }},
      {"--version", "", "print the version",
       [&plan](std::string_view /*none*/) { plan.version = true; }},
  };
}

std::optional<unsigned> chosen_cpu(const std::string& text) {
  if (text == "any") {
    return std::nullopt;
  }
  const auto cpus = probe::chosen_cpus("--cpu", text.empty() ? std::nullopt : std::optional(text));
  if (!text.empty() && cpus.size() != 1) {
    throw Failure("--cpu: '" + text + "' is not one CPU; write for example 1, or 'any'");
  }
  return cpus.back();
}

}  // namespace

RobotPlan parse_robot_plan(std::span<const char* const> arguments) {
  RobotPlan plan;
  std::string cpu;
  probe::parse_options(options_of(plan, cpu), arguments);
  if (plan.help || plan.version) {
    return plan;
  }
  if (plan.output.empty() == plan.simulate.empty()) {
    throw Failure(plan.output.empty()
                      ? "--output: is missing; name a folder for the recording"
                      : "--simulate: contradicts --output; it prints what it computes");
  }
  plan.cpu = chosen_cpu(cpu);
  return plan;
}

std::string robot_help() {
  RobotPlan plan;
  std::string cpu;
  return probe::help_text("latenz-robot", R"(
Controls a simulated robot in real time: a servo at 1 kHz follows the way that a planner, an
ordinary process, publishes through shared memory. Keeps when each cycle ran (activation) and when
its command was written (completion), and tells the control error that the delays caused.
All times are integers in nanoseconds.

Exit code: 0 complete; 2 wrong usage or missing privilege; 3 the planner's process ended, after a
safe stop; 4 disk full or not writable; 128 + signal (130, 143) ended by a signal. All samples
taken are kept in each case.
)",
                          options_of(plan, cpu));
}

}  // namespace latenz::robot
