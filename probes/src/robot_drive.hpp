// SPDX-License-Identifier: Apache-2.0
// The simulated plant: one joint's drive with its motor. Its time is real time, to the nanosecond.
#pragma once

#include <cmath>
#include <cstdint>

namespace latenz::robot {

/// A motor that turns an inertia against viscous friction; its torque follows the command with the
/// lag of a closed current loop.
struct Motor {
  static constexpr double inertia = 0.1;       ///< kg m^2
  static constexpr double friction = 0.05;     ///< Nm s/rad
  static constexpr double lag_s = 0.0005;      ///< time constant of the torque
  static constexpr double torque_limit = 8.0;  ///< Nm

  double position = 0;  ///< rad
  double velocity = 0;  ///< rad/s
  double torque = 0;    ///< Nm

  /// Moves on under a constant command. Exact for any duration: the model is linear, and this is
  /// its solution.
  void advance(double seconds, double command) {
    constexpr double slow = friction / inertia;
    constexpr double fast = 1 / lag_s;
    static_assert(slow < fast, "the solution holds for unlike time constants");
    const double slowly = -std::expm1(-slow * seconds);  // 1 - e^(-slow t)
    const double fastly = -std::expm1(-fast * seconds);
    const double final_velocity = command / friction;
    const double of_lag = (torque - command) / (inertia * (slow - fast));
    const double of_friction = velocity - final_velocity - of_lag;
    position += final_velocity * seconds + of_friction * slowly / slow + of_lag * fastly / fast;
    velocity -= of_friction * slowly + of_lag * fastly;
    torque += (command - torque) * fastly;
  }
};

/// A drive that holds each command until the next, and switches its torque off when none comes for
/// too long.
class Drive {
 public:
  explicit Drive(std::int64_t watchdog_ns) : watchdog_ns_(watchdog_ns) {}

  /// Lets time pass; `time_ns` must not fall.
  void advance_to(std::int64_t time_ns) {
    const std::int64_t off_ns = commanded_ns_ + watchdog_ns_;
    if (command_ != 0 && time_ns > off_ns) {
      pass(off_ns);
      command_ = 0;
    }
    pass(time_ns);
  }

  /// A command that arrives now; within the torque limit.
  void command(std::int64_t time_ns, double torque) {
    advance_to(time_ns);
    command_ = torque;
    commanded_ns_ = time_ns;
  }

  [[nodiscard]] const Motor& motor() const { return motor_; }

 private:
  void pass(std::int64_t time_ns) {
    if (now_ns_ != 0) {
      motor_.advance(static_cast<double>(time_ns - now_ns_) * 1e-9, command_);
    }
    now_ns_ = time_ns;
  }

  std::int64_t watchdog_ns_;
  std::int64_t now_ns_ = 0;  ///< 0: time has not begun
  std::int64_t commanded_ns_ = 0;
  double command_ = 0;
  Motor motor_;
};

}  // namespace latenz::robot
