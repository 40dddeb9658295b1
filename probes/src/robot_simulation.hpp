// SPDX-License-Identifier: Apache-2.0
// The robot in virtual time: servo, drives and planner stepped by given instants.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "robot_servo.hpp"

namespace latenz::robot {

/// When a cycle was due, ran, and had written its command.
struct Instants {
  std::int64_t due_ns;
  std::int64_t activation_ns;
  std::int64_t completion_ns;
};

/// Reads instants from a CSV file. Throws `Failure` with file and line.
[[nodiscard]] std::vector<Instants> read_instants(const std::filesystem::path& path,
                                                  std::int64_t interval_ns);

/// One joint in one cycle; before the cycle's command takes effect.
struct Step {
  Cycle cycle;
  std::size_t joint;
  Reference reference;  ///< at the activation, of the motion that the cycle began with
  Motor motor;
  double torque;  ///< that the cycle commands
};

/// Steps through all instants. The planner publishes at each multiple of 10 ms, without delay,
/// until `planner_ends_ns`.
[[nodiscard]] std::vector<Step> simulate(
    const ServoPlan& plan, std::span<const Instants> instants,
    std::int64_t planner_ends_ns = std::numeric_limits<std::int64_t>::max());

/// As CSV, every digit kept.
[[nodiscard]] std::string to_csv(std::span<const Step> steps);

}  // namespace latenz::robot
