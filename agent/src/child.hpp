// SPDX-License-Identifier: Apache-2.0
// Programs that run for the agent, of which nothing outlives it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "file.hpp"

namespace latenz::agent {

struct Order {
  std::string folder;  ///< where it runs, and its TMPDIR
  std::string output;  ///< path of the file that takes standard output
  std::string errors;  ///< and of that for standard error
  std::int64_t grace_ms = 0;
  std::optional<cpu_set_t> cpus;  ///< where it may run; none: where the agent was started
  /// Program and arguments; "@wakeup" and the like are the agent's own programs.
  std::vector<std::string> arguments;
};

/// A running program under a supervisor of its own: a process that interrupts the program when
/// `stop` is called or the agent is gone, and after a grace time kills all of its descendants.
class Child {
 public:
  /// Throws `probe::Failure` if no process can be had. A program that cannot be started ends with
  /// status 127 and a line in its errors.
  explicit Child(const Order& order);

  [[nodiscard]] pid_t supervisor() const { return supervisor_; }
  /// Its exit status, once it has ended; 128 + the signal that ended it.
  [[nodiscard]] std::optional<int> status() const { return status_; }
  void ended(int wait_status);
  void stop() { control_.close(); }

 private:
  pid_t supervisor_ = -1;
  probe::File control_;  ///< closed: the program has to end
  std::optional<int> status_;
};

/// Kills every descendant of this process and waits for it.
void kill_descendants();

/// Closes everything but the standard streams and what is named.
void close_others(const std::vector<int>& kept);

/// An exit code like a shell's.
[[nodiscard]] int exit_code(int wait_status);

}  // namespace latenz::agent
