// SPDX-License-Identifier: Apache-2.0
#include "robot_servo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace latenz::robot {
namespace {

constexpr Limits limits{};

std::int32_t microradians(double angle) {
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::lround(std::clamp(angle * 1e6, -most, most)));
}

}  // namespace

double Controller::torque(const Reference& reference, const Reference& ahead, const Motor& measured,
                          double cycle_s) {
  const double wanted_velocity =
      reference.velocity + position_gain * (reference.position - measured.position);
  const double error = wanted_velocity - measured.velocity;
  const double integral = integral_ + error * cycle_s;
  const double wanted = velocity_gain * error + integral_gain * integral +
                        Motor::inertia * ahead.acceleration + Motor::friction * ahead.velocity;
  const double possible = std::clamp(wanted, -Motor::torque_limit, Motor::torque_limit);
  saturated_ = possible != wanted;
  if (!saturated_) {
    integral_ = integral;  // at the limit it would only wind up
  }
  return possible;
}

Servo::Servo(const ServoPlan& plan) : plan_(plan) {
  joints_.assign(plan.joints, Joint{.drive = Drive((plan.most_missed + 1) * plan.interval_ns)});
}

Cycle Servo::act(std::int64_t due_ns, std::int64_t activation_ns, const SetPoints* points) {
  Cycle cycle{.due_ns = due_ns,
              .activation_ns = activation_ns,
              .set_point_age_ns = points == nullptr ? -1 : activation_ns - points->published_ns,
              .tracked = motion_ == Motion::following};
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    joints_[i].drive.advance_to(activation_ns);
    const double wanted = reference(i, activation_ns, points).position;
    cycle.error_urad[i] = microradians(wanted - motor(i).position);
  }
  const std::int64_t skipped = (activation_ns - due_ns) / plan_.interval_ns;
  choose_motion(cycle, skipped, points);
  cycle.motion = motion_;
  // It believes to be on time, as a controller without a clock does: in the cycle that is due.
  const std::int64_t nominal_ns = due_ns + skipped * plan_.interval_ns;
  const auto lag_ns = static_cast<std::int64_t>(Motor::lag_s * 1e9);
  const std::int64_t ahead_ns = nominal_ns + plan_.interval_ns / 2 + lag_ns;
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    Joint& joint = joints_[i];
    joint.torque =
        joint.controller.torque(reference(i, nominal_ns, points), reference(i, ahead_ns, points),
                                motor(i), static_cast<double>(plan_.interval_ns) * 1e-9);
    cycle.saturated = cycle.saturated || joint.controller.saturated();
  }
  return cycle;
}

void Servo::choose_motion(const Cycle& cycle, std::int64_t skipped, const SetPoints* points) {
  const bool fresh = points != nullptr && cycle.set_point_age_ns <= plan_.stale_ns;
  const bool punctual = skipped <= plan_.most_missed;
  if (motion_ == Motion::following && !(fresh && punctual)) {
    ++(punctual ? stops_.stale : stops_.missed);
    motion_ = Motion::stopping;
    brake(cycle.activation_ns);
  } else if (motion_ == Motion::stopping) {
    const double since_s = static_cast<double>(cycle.activation_ns - stop_begin_ns_) * 1e-9;
    motion_ = since_s >= stop_s_ ? Motion::standing : Motion::stopping;
  } else if (motion_ == Motion::standing && fresh && punctual &&
             points->after_stop == stops_.all()) {
    motion_ = Motion::following;
  }
}

/// From where the joints are, since nobody knows what happened meanwhile; all stop together.
void Servo::brake(std::int64_t now_ns) {
  stop_begin_ns_ = now_ns;
  double fastest = 0;
  for (Joint& joint : joints_) {
    joint.stop_position = joint.drive.motor().position;
    joint.stop_velocity = joint.drive.motor().velocity;
    joint.controller.reset();
    fastest = std::max(fastest, std::fabs(joint.stop_velocity));
  }
  stop_s_ = fastest / limits.acceleration;
}

double Servo::resting_place(const Joint& joint) const {
  return joint.stop_position + joint.stop_velocity * stop_s_ / 2;
}

Reference Servo::on_ramp(const Joint& joint, std::int64_t time_ns) const {
  const double since_s = static_cast<double>(time_ns - stop_begin_ns_) * 1e-9;
  if (stop_s_ == 0 || since_s >= stop_s_) {
    return {.position = resting_place(joint)};
  }
  const double left = 1 - since_s / stop_s_;
  return {.position = resting_place(joint) - joint.stop_velocity * stop_s_ / 2 * left * left,
          .velocity = joint.stop_velocity * left,
          .acceleration = -joint.stop_velocity / stop_s_};
}

Reference Servo::reference(std::size_t joint, std::int64_t time_ns, const SetPoints* points) const {
  const bool follows = motion_ == Motion::following && points != nullptr;
  return follows ? reference_at(*points, joint, time_ns) : on_ramp(joints_[joint], time_ns);
}

void Servo::describe(std::int64_t due_ns, Status& status) const {
  status.due_ns = due_ns;
  status.stops = stops_.all();
  status.standing = motion_ == Motion::standing ? 1 : 0;
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    status.position[i] = resting_place(joints_[i]);
    status.torque[i] = joints_[i].torque;
  }
}

void Servo::command(std::int64_t completion_ns) {
  for (Joint& joint : joints_) {
    joint.drive.command(completion_ns, joint.torque);
  }
}

}  // namespace latenz::robot
