// SPDX-License-Identifier: Apache-2.0
// The parts of the control loop that need no operating system: a drive with its motor, and the
// servo's law. The drive runs as it is on a real-time core, bare metal.
#pragma once

#include "control_messages.hpp"

namespace control {

/// A motor with an arm, one cycle at a time.
class Motor {
 public:
  Measured turn(const Command& command) noexcept {
    constexpr float inertia = 0.02F;   // kg m^2
    constexpr float friction = 0.05F;  // Nm s/rad
    velocity_ += (command.torque - friction * velocity_) / inertia * cycle_s;
    angle_ += velocity_ * cycle_s;
    return {.cycle = command.cycle, .angle = angle_, .velocity = velocity_};
  }

 private:
  float angle_ = 0;
  float velocity_ = 0;
};

/// Holds the motor on its trajectory: torque in proportion to the errors of angle and velocity.
class Servo {
 public:
  Command next(std::uint32_t cycle, const Measured& measured) noexcept {
    constexpr float stiffness = 40.0F;  // Nm/rad
    constexpr float damping = 1.5F;     // Nm s/rad
    const float velocity = (target(cycle) - target(cycle - 1)) / cycle_s;
    const float torque =
        stiffness * (target(cycle) - measured.angle) + damping * (velocity - measured.velocity);
    return {.cycle = cycle, .torque = torque};
  }

  /// The planner's newest trajectory, if one is there.
  void follow(Trajectories::Reader& trajectories) noexcept { trajectories.poll(trajectory_); }

  /// Where the motor should be; the last known point if the planner is late.
  [[nodiscard]] float target(std::uint32_t cycle) const noexcept {
    constexpr std::uint32_t points = sizeof trajectory_.angle / sizeof trajectory_.angle[0];
    const std::uint32_t point = cycle - trajectory_.first_cycle;
    return trajectory_.angle[point < points ? point : points - 1];
  }

 private:
  Trajectory trajectory_{};
};

/// The drive's whole program: serves until its servo closes the channel or falls silent.
inline latenz::icc::Result drive(Drive::Server& server) noexcept {
  Motor motor;
  const auto serve = [&motor](const Command& command) { return motor.turn(command); };
  for (;;) {
    const latenz::icc::Result result = server.serve(serve);
    if (result != latenz::icc::Result::ok && result != latenz::icc::Result::peer_restarted) {
      return result;
    }
  }
}

}  // namespace control
