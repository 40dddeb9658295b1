// SPDX-License-Identifier: Apache-2.0
// What the cycles of a run come to: control error, jitter, missed cycles; in bounded memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "json.hpp"
#include "robot_servo.hpp"

namespace latenz::robot {

/// Root mean square and greatest magnitude of any number of values.
class Spread {
 public:
  void add(std::int64_t value);
  [[nodiscard]] std::int64_t rms() const;
  [[nodiscard]] std::int64_t max() const { return max_; }

 private:
  std::int64_t n_ = 0;
  double squares_ = 0;
  std::int64_t max_ = 0;
};

/// The greatest error in each stretch of time, and the cycles missed there. All stretches are
/// equally long: twice as long whenever there would be too many.
class ErrorOverTime {
 public:
  struct Stretch {
    std::int64_t max_urad = 0;
    std::int64_t missed = 0;
  };
  static constexpr std::size_t most_stretches = 1024;

  /// `time_ns` must not fall.
  void add(std::int64_t time_ns, std::int64_t error_urad, std::int64_t missed);
  [[nodiscard]] std::int64_t stretch_ns() const { return stretch_ns_; }
  [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }

 private:
  std::optional<std::int64_t> begin_ns_;
  std::int64_t stretch_ns_ = 10'000'000;
  std::vector<Stretch> stretches_;
};

class Figures {
 public:
  Figures(std::size_t joints, std::int64_t interval_ns)
      : joints_(joints), interval_ns_(interval_ns) {}

  /// The next cycle of the run.
  void add(const Cycle& cycle);

  [[nodiscard]] std::int64_t cycles() const { return cycles_; }
  [[nodiscard]] std::int64_t missed() const { return missed_; }
  [[nodiscard]] std::int64_t max_latency_ns() const { return max_latency_ns_; }

  /// Adds its members to the object that is open.
  void write(probe::Json& json) const;

 private:
  std::size_t joints_;
  std::int64_t interval_ns_;
  std::int64_t cycles_ = 0;
  std::int64_t missed_ = 0;
  std::int64_t tracked_ = 0;
  std::int64_t saturated_ = 0;
  std::int64_t max_latency_ns_ = 0;
  std::optional<Cycle> last_;
  Spread jitter_;
  Spread age_;
  Spread error_;
  std::array<Spread, most_joints> joint_errors_;
  ErrorOverTime over_time_;
};

}  // namespace latenz::robot
