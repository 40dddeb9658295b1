// SPDX-License-Identifier: Apache-2.0
// What planner and servo tell each other, and the channels for it. docs/robot.md
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/icc.hpp"
#include "robot_trajectory.hpp"

namespace latenz::robot {

inline constexpr std::size_t window_knots = 20;  ///< of the way, in each message
inline constexpr std::int64_t knots_before = 4;  ///< of them lie before the publication
inline constexpr std::int64_t plan_every_ns = knot_ns;

/// From the planner: a window of the way, from a little before its publication to well after it.
/// Times are on CLOCK_MONOTONIC; knot k of joint j lies at [k * 6 + j].
struct SetPoints {
  std::int64_t published_ns;
  std::int64_t first_ns;     ///< of the first knot
  std::uint32_t after_stop;  ///< the servo's safe stop after which this way begins
  std::uint32_t reserved;
  double position[window_knots * most_joints];
  double velocity[window_knots * most_joints];
  double acceleration[window_knots * most_joints];
};

/// From the servo, once a cycle: what it commands, and where it stands.
struct Status {
  std::int64_t due_ns;
  std::uint32_t stops;           ///< safe stops so far
  std::uint32_t standing;        ///< 1: stands still and awaits a way from there
  double position[most_joints];  ///< where it stands, or will after braking
  double torque[most_joints];
};

using SetPointChannel = icc::Latest<SetPoints>;
using StatusChannel = icc::Latest<Status>;

/// Where the channels lie in the shared memory.
inline constexpr std::size_t status_offset = SetPointChannel::bytes;
inline constexpr std::size_t shared_bytes = status_offset + StatusChannel::bytes;

/// Reference of a joint at a time, from a window; its first or last position outside of it.
[[nodiscard]] inline Reference reference_at(const SetPoints& points, std::size_t joint,
                                            std::int64_t time_ns) {
  const auto knot = [&points, joint](std::size_t k) {
    const std::size_t i = k * most_joints + joint;
    return Reference{.position = points.position[i],
                     .velocity = points.velocity[i],
                     .acceleration = points.acceleration[i]};
  };
  const std::int64_t since_ns = time_ns - points.first_ns;
  if (since_ns < 0) {
    return {.position = knot(0).position};
  }
  const auto k = static_cast<std::size_t>(since_ns / knot_ns);
  if (k + 1 >= window_knots) {
    return {.position = knot(window_knots - 1).position};
  }
  const double part = static_cast<double>(since_ns % knot_ns) / static_cast<double>(knot_ns);
  return between(knot(k), knot(k + 1), part);
}

}  // namespace latenz::robot
