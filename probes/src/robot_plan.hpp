// SPDX-License-Identifier: Apache-2.0
// What one run of latenz-robot is asked to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "plan.hpp"
#include "robot_servo.hpp"

namespace latenz::robot {

struct RobotPlan {
  std::filesystem::path output;
  ServoPlan servo;
  std::optional<unsigned> cpu;  ///< absent: the kernel chooses, anew at each activation
  probe::Policy policy = probe::Policy::fifo;
  int priority = 80;
  bool locked = true;  ///< memory cannot be paged out, and is all there before the start
  std::optional<std::int32_t> dma_latency_us;  ///< absent: left alone
  std::optional<std::int64_t> duration_ns;
  std::int64_t warm_up_ns = 500'000'000;
  std::filesystem::path simulate;  ///< instants of a virtual run; empty: a real one
  bool help = false;
  bool version = false;
};

/// Reads the command line (without the program's name). Throws `Failure`.
[[nodiscard]] RobotPlan parse_robot_plan(std::span<const char* const> arguments);

[[nodiscard]] std::string robot_help();

}  // namespace latenz::robot
