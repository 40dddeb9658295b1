// SPDX-License-Identifier: Apache-2.0
// The planner: knows the way, and publishes a window of it a hundred times a second. Not real-time.
#pragma once

#include <optional>

#include "latenz/icc/linux_memory.hpp"
#include "robot_messages.hpp"

namespace latenz::robot {

/// What the planner does, without its clock and channels.
class Planner {
 public:
  explicit Planner(std::size_t joints) : joints_(joints) {}

  /// The window to publish at `now_ns`; false: nothing to publish yet. `status`: the servo's
  /// newest, if there is one. The way begins where the servo first stands, and anew after each safe
  /// stop.
  [[nodiscard]] bool plan(std::int64_t now_ns, const Status* status, SetPoints& points);

 private:
  void begin(std::int64_t now_ns, const Status& status);

  std::size_t joints_;
  std::optional<Path> path_;
  std::int64_t origin_ns_ = 0;  ///< knot 0 of the way
  std::uint32_t after_stop_ = 0;
};

/// The planner's process: never returns. Ends with its parent.
[[noreturn]] void run_planner(const icc::LinuxMemory& memory, std::size_t joints);

}  // namespace latenz::robot
