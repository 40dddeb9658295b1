// SPDX-License-Identifier: Apache-2.0
#include "robot_trajectory.hpp"

#include <algorithm>
#include <cmath>

namespace latenz::robot {
namespace {

// The greatest velocity, acceleration and jerk of 10 s^3 - 15 s^4 + 6 s^5 for s from 0 to 1.
constexpr double greatest_velocity = 1.875;
constexpr double greatest_acceleration = 5.773502691896258;  // 10 / sqrt(3)
constexpr double greatest_jerk = 60;

}  // namespace

std::int64_t knots_for(double distance, const Limits& limits) {
  const double length = std::fabs(distance);
  const double duration_s =
      std::max({greatest_velocity * length / limits.velocity,
                std::sqrt(greatest_acceleration * length / limits.acceleration),
                std::cbrt(greatest_jerk * length / limits.jerk)});
  return std::max<std::int64_t>(1, std::llround(std::ceil(duration_s / knot_s)));
}

Reference Segment::at(std::size_t joint, std::int64_t knot) const {
  const double duration_s = static_cast<double>(knots) * knot_s;
  const double s = static_cast<double>(knot - begin) / static_cast<double>(knots);
  const double length = to[joint] - from[joint];
  const double rest = 1 - s;
  return {.position = from[joint] + length * s * s * s * (10 + s * (6 * s - 15)),
          .velocity = length / duration_s * 30 * s * s * rest * rest,
          .acceleration = length / (duration_s * duration_s) * 60 * s * rest * (1 - 2 * s)};
}

Segment Segment::next(std::size_t joints, const Limits& limits) const {
  Segment following{.number = number + 1, .begin = end(), .from = to, .to = to};
  for (std::size_t joint = 0; joint < joints; ++joint) {
    following.to[joint] = waypoint(following.number, joint);
    const double distance = following.to[joint] - to[joint];
    following.knots = std::max(following.knots, knots_for(distance, limits));
  }
  return following;
}

double waypoint(std::uint32_t number, std::size_t joint) {
  // splitmix64: every number gives another angle, the same on every machine
  std::uint64_t bits = (std::uint64_t{number} * most_joints + joint + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  bits ^= bits >> 31U;
  return std::ldexp(static_cast<double>(bits >> 11U), -52) - 1;
}

Path::Path(const Angles& start, std::size_t joints, const Limits& limits)
    : joints_(joints),
      limits_(limits),
      segment_(Segment{.knots = 0, .from = start, .to = start}.next(joints, limits)) {}

void Path::move_to(std::int64_t knot) {
  while (segment_.end() < knot) {
    segment_ = segment_.next(joints_, limits_);
  }
}

Reference Path::at(std::size_t joint, std::int64_t knot) const {
  Segment segment = segment_;
  while (segment.end() < knot) {
    segment = segment.next(joints_, limits_);
  }
  return segment.at(joint, std::max(knot, segment.begin));
}

Reference between(const Reference& first, const Reference& second, double part) {
  const double t = part;
  const double h = knot_s;
  const double v0 = first.velocity * h;
  const double a0 = first.acceleration * h * h / 2;
  // What is left for the powers 3 to 5, which bring position, velocity and acceleration home.
  const double p = second.position - first.position - v0 - a0;
  const double v = second.velocity * h - v0 - 2 * a0;
  const double a = second.acceleration * h * h - 2 * a0;
  const double c3 = 10 * p - 4 * v + a / 2;
  const double c4 = -15 * p + 7 * v - a;
  const double c5 = 6 * p - 3 * v + a / 2;
  return {
      .position = first.position + t * (v0 + t * (a0 + t * (c3 + t * (c4 + t * c5)))),
      .velocity = (v0 + t * (2 * a0 + t * (3 * c3 + t * (4 * c4 + t * 5 * c5)))) / h,
      .acceleration = (2 * a0 + t * (6 * c3 + t * (12 * c4 + t * 20 * c5))) / (h * h),
  };
}

}  // namespace latenz::robot
