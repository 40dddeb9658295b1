// SPDX-License-Identifier: Apache-2.0
// What the processors of the control loop tell each other.
#pragma once

#include "latenz/icc.hpp"

namespace control {

/// A piece of the way, made by the planner when it likes: 50 points, one a control cycle.
struct Trajectory {
  std::uint32_t first_cycle;
  float angle[50];  ///< rad
};

/// From the servo to the drive, once a cycle.
struct Command {
  std::uint32_t cycle;
  float torque;  ///< Nm
};

/// The drive's answer: what its sensor measured, once it had applied the torque.
struct Measured {
  std::uint32_t cycle;
  float angle;     ///< rad
  float velocity;  ///< rad/s
};

#ifdef LATENZ_CONTROL_PLATFORM
using Platform = LATENZ_CONTROL_PLATFORM;  // as in -DLATENZ_CONTROL_PLATFORM=latenz::icc::ZynqMp
#else
using Platform = latenz::icc::Platform<>;
#endif
using Trajectories = latenz::icc::Latest<Trajectory, 1, Platform>;
using Drive = latenz::icc::Exchange<Command, Measured, Platform>;

/// Where the channels are in the shared memory.
inline constexpr std::size_t drive_offset = 0;
inline constexpr std::size_t trajectories_offset = Drive::bytes;
inline constexpr std::size_t shared_bytes = Drive::bytes + Trajectories::bytes;

inline constexpr float cycle_s = 0.001F;

}  // namespace control
