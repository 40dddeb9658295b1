// SPDX-License-Identifier: Apache-2.0
// The robot's way: from rest to rest by quintic polynomials that keep to limits of velocity,
// acceleration and jerk, handed on as knots a fixed time apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace latenz::robot {

inline constexpr std::size_t most_joints = 6;
inline constexpr std::int64_t knot_ns = 10'000'000;  ///< between two knots
inline constexpr double knot_s = 0.01;

using Angles = std::array<double, most_joints>;  ///< rad

/// Where a joint should be, how fast, and with which acceleration; rad and seconds.
struct Reference {
  double position = 0;
  double velocity = 0;
  double acceleration = 0;
};

/// What a joint may do; rad and seconds.
struct Limits {
  double velocity = 4;
  double acceleration = 40;
  double jerk = 2000;
};

/// Fewest knot intervals in which a joint gets `distance` rad from rest to rest within its limits.
[[nodiscard]] std::int64_t knots_for(double distance, const Limits& limits);

/// One stretch of the way, from rest to rest; all joints start and end together.
struct Segment {
  std::uint32_t number = 0;
  std::int64_t begin = 0;  ///< its first knot
  std::int64_t knots = 1;  ///< intervals of its duration
  Angles from{};
  Angles to{};

  [[nodiscard]] std::int64_t end() const { return begin + knots; }
  [[nodiscard]] Reference at(std::size_t joint, std::int64_t knot) const;
  [[nodiscard]] Segment next(std::size_t joints, const Limits& limits) const;
};

/// Where the way's stretch with that number leads: always the same angle, within 1 rad of zero.
[[nodiscard]] double waypoint(std::uint32_t number, std::size_t joint);

/// An endless way from where a robot stands.
class Path {
 public:
  Path(const Angles& start, std::size_t joints, const Limits& limits = {});

  /// Reference of each joint at a knot; knots before 0 are the start. `knot` must not fall.
  void move_to(std::int64_t knot);
  [[nodiscard]] Reference at(std::size_t joint, std::int64_t knot) const;

 private:
  std::size_t joints_;
  Limits limits_;
  Segment segment_;
};

/// The quintic polynomial through two knots, `part` (0 to 1) of the way from the first: what lies
/// on one quintic polynomial at both is met exactly between them.
[[nodiscard]] Reference between(const Reference& first, const Reference& second, double part);

}  // namespace latenz::robot
