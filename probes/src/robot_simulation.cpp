// SPDX-License-Identifier: Apache-2.0
#include "robot_simulation.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

#include "failure.hpp"
#include "robot_planner.hpp"

namespace latenz::robot {
namespace {

constexpr std::string_view columns = "due_ns,activation_ns,completion_ns";

[[noreturn]] void refuse(const std::filesystem::path& path, std::size_t line,
                         const std::string& what) {
  throw probe::Failure("--simulate: " + path.string() + ":" + std::to_string(line) + ": " + what);
}

/// Three integers; false if the text is anything else.
bool read_row(std::string_view text, Instants& row) {
  const std::array<std::int64_t*, 3> fields{&row.due_ns, &row.activation_ns, &row.completion_ns};
  const char* const end = text.data() + text.size();
  const char* place = text.data();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [rest, error] = std::from_chars(place, end, *fields[i]);
    const bool last = i + 1 == fields.size();
    if (error != std::errc{} || (last ? rest != end : rest == end || *rest != ',')) {
      return false;
    }
    place = last ? rest : rest + 1;
  }
  return true;
}

std::string exact(double value) {
  std::array<char, 32> digits{};
  const auto done = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), done.ptr};
}

}  // namespace

std::vector<Instants> read_instants(const std::filesystem::path& path, std::int64_t interval_ns) {
  std::ifstream file;
  if (std::filesystem::is_regular_file(path)) file.open(path);
  if (!file.is_open()) {
    throw probe::Failure("--simulate: " + path.string() + ": cannot be read; name a CSV file");
  }
  std::string text;
  if (!std::getline(file, text) || text != columns) {
    refuse(path, 1, "is not the header of instants; write " + std::string(columns));
  }
  std::vector<Instants> found;
  for (std::size_t line = 2; std::getline(file, text); ++line) {
    Instants row{};
    if (!read_row(text, row)) {
      refuse(path, line,
             "is not three integers; write nanoseconds such as 1000000,1020000,1025000");
    }
    const Instants before =
        found.empty()
            ? Instants{.due_ns = row.due_ns - interval_ns, .activation_ns = 0, .completion_ns = 0}
            : found.back();
    const std::int64_t since_ns = row.due_ns - before.due_ns;
    if (row.due_ns <= 0 || since_ns <= 0 || since_ns % interval_ns != 0) {
      refuse(path, line, "is not due whole intervals after the row before; see --interval");
    }
    if (row.activation_ns < row.due_ns || row.completion_ns < row.activation_ns ||
        row.activation_ns < before.completion_ns) {
      refuse(path, line, "is not in order; each cycle is due, runs, and completes before the next");
    }
    found.push_back(row);
  }
  return found;
}

std::vector<Step> simulate(const ServoPlan& plan, std::span<const Instants> instants,
                           std::int64_t planner_ends_ns) {
  Servo servo(plan);
  Planner planner(plan.joints);
  Status status{};
  SetPoints points{};
  bool published = false;
  std::int64_t publish_ns = plan_every_ns;
  std::vector<Step> steps;
  steps.reserve(instants.size() * plan.joints);
  std::vector<Reference> references(plan.joints);
  for (const Instants& now : instants) {
    for (; publish_ns <= now.activation_ns; publish_ns += plan_every_ns) {
      const bool alive = publish_ns < planner_ends_ns && !steps.empty();
      published = (alive && planner.plan(publish_ns, &status, points)) || published;
    }
    const SetPoints* const newest = published ? &points : nullptr;
    for (std::size_t joint = 0; joint < plan.joints; ++joint) {
      references[joint] = servo.reference(joint, now.activation_ns, newest);
    }
    Cycle cycle = servo.act(now.due_ns, now.activation_ns, newest);
    cycle.completion_ns = now.completion_ns;
    for (std::size_t joint = 0; joint < plan.joints; ++joint) {
      steps.push_back({.cycle = cycle,
                       .joint = joint,
                       .reference = references[joint],
                       .motor = servo.motor(joint),
                       .torque = servo.torque(joint)});
    }
    servo.describe(now.due_ns, status);
    servo.command(now.completion_ns);
  }
  return steps;
}

std::string to_csv(std::span<const Step> steps) {
  constexpr std::array<std::string_view, 3> motions{"standing", "following", "stopping"};
  std::string csv =
      "due_ns,activation_ns,completion_ns,motion,joint,reference_rad,reference_rad_per_s,"
      "reference_rad_per_s2,position_rad,velocity_rad_per_s,motor_torque_nm,command_nm,error_"
      "urad\n";
  for (const Step& step : steps) {
    const Cycle& cycle = step.cycle;
    csv += std::to_string(cycle.due_ns) + "," + std::to_string(cycle.activation_ns) + "," +
           std::to_string(cycle.completion_ns) + ",";
    csv += std::string(motions[static_cast<std::size_t>(cycle.motion)]) + "," +
           std::to_string(step.joint);
    for (const double value :
         {step.reference.position, step.reference.velocity, step.reference.acceleration,
          step.motor.position, step.motor.velocity, step.motor.torque, step.torque}) {
      csv += "," + exact(value);
    }
    csv += "," + std::to_string(cycle.error_urad[step.joint]) + "\n";
  }
  return csv;
}

}  // namespace latenz::robot
