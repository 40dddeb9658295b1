// SPDX-License-Identifier: Apache-2.0
// The servo: what it does in a cycle, without clocks and channels, so that a virtual time may step
// it as well as the real one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "robot_drive.hpp"
#include "robot_messages.hpp"

namespace latenz::robot {

/// Cascade of a position and a velocity loop for one joint, with feed-forward.
class Controller {
 public:
  static constexpr double position_gain = 60;   ///< 1/s
  static constexpr double velocity_gain = 30;   ///< Nm s/rad
  static constexpr double integral_gain = 600;  ///< Nm/rad

  /// Torque within the limit. `ahead`: the reference when the torque will act.
  [[nodiscard]] double torque(const Reference& reference, const Reference& ahead,
                              const Motor& measured, double cycle_s);
  void reset() { integral_ = 0; }
  [[nodiscard]] bool saturated() const { return saturated_; }

 private:
  double integral_ = 0;  ///< rad
  bool saturated_ = false;
};

struct ServoPlan {
  std::size_t joints = most_joints;
  std::int64_t interval_ns = 1'000'000;
  std::int64_t stale_ns = 100'000'000;  ///< set-points older than that stop the robot
  std::int64_t most_missed = 20;        ///< more cycles missed at once stop it as well
};

enum class Motion : std::uint8_t {
  standing,   ///< holds its position, and waits for a way that begins there
  following,  ///< follows the planner's way
  stopping,   ///< brakes as fast as the limits permit
};

/// One cycle, as it is recorded.
struct Cycle {
  std::int64_t due_ns = 0;
  std::int64_t activation_ns = 0;                      ///< when it ran
  std::int64_t completion_ns = 0;                      ///< when its command was written
  std::int64_t set_point_age_ns = -1;                  ///< -1: there was none yet
  std::array<std::int32_t, most_joints> error_urad{};  ///< reference - position, at the activation
  bool tracked = false;    ///< the reference of the error was the planner's way
  bool saturated = false;  ///< a torque was at its limit
  Motion motion = Motion::standing;
};

/// Safe stops, by what caused them.
struct Stops {
  std::uint32_t stale = 0;
  std::uint32_t missed = 0;
  [[nodiscard]] std::uint32_t all() const { return stale + missed; }
};

class Servo {
 public:
  explicit Servo(const ServoPlan& plan);

  /// Lets the robot move until the activation, measures it, and computes the cycle's torques.
  /// `points`: the newest set-points, null before the first.
  Cycle act(std::int64_t due_ns, std::int64_t activation_ns, const SetPoints* points);

  /// The torques of this cycle, as they go out.
  void describe(std::int64_t due_ns, Status& status) const;

  /// The torques reach the drives.
  void command(std::int64_t completion_ns);

  [[nodiscard]] const Stops& stops() const { return stops_; }
  [[nodiscard]] Motion motion() const { return motion_; }
  [[nodiscard]] const Motor& motor(std::size_t joint) const { return joints_[joint].drive.motor(); }
  [[nodiscard]] Reference reference(std::size_t joint, std::int64_t time_ns,
                                    const SetPoints* points) const;
  [[nodiscard]] double torque(std::size_t joint) const { return joints_[joint].torque; }

 private:
  struct Joint {
    Drive drive;
    Controller controller{};
    double torque = 0;
    // The braking ramp: from here, at this velocity, to rest.
    double stop_position = 0;
    double stop_velocity = 0;
  };

  void choose_motion(const Cycle& cycle, std::int64_t skipped, const SetPoints* points);
  void brake(std::int64_t now_ns);
  [[nodiscard]] double resting_place(const Joint& joint) const;
  [[nodiscard]] Reference on_ramp(const Joint& joint, std::int64_t time_ns) const;

  ServoPlan plan_;
  std::vector<Joint> joints_;
  Motion motion_ = Motion::standing;
  Stops stops_;
  std::int64_t stop_begin_ns_ = 0;
  double stop_s_ = 0;  ///< how long braking takes
};

}  // namespace latenz::robot
