// SPDX-License-Identifier: Apache-2.0
// Notices that the machine was suspended, and that somebody set the time of day.
#pragma once

#include <cstdint>
#include <optional>

namespace latenz::probe {

/// How far the two other clocks are ahead of CLOCK_MONOTONIC at one moment.
struct ClockOffsets {
  std::int64_t boot_ns;  ///< CLOCK_BOOTTIME goes on while the machine is suspended
  std::int64_t real_ns;  ///< CLOCK_REALTIME is set by people and programs
};

/// Reads all clocks as close to one another as it gets; nothing if they could not be read within
/// `longest_reading_ns`.
[[nodiscard]] std::optional<ClockOffsets> read_clock_offsets();

inline constexpr std::int64_t longest_reading_ns = 50'000;

/// What became of the clocks from one look to the next.
class ClockWatch {
 public:
  void look(const std::optional<ClockOffsets>& now);

  [[nodiscard]] std::int64_t suspended_ns() const { return suspended_ns_; }
  /// How often the time of day was set; being corrected in its rate is none.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Sum of all steps.
  [[nodiscard]] std::int64_t stepped_ns() const { return stepped_ns_; }

 private:
  std::optional<ClockOffsets> last_;
  std::int64_t suspended_ns_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t stepped_ns_ = 0;
};

}  // namespace latenz::probe
