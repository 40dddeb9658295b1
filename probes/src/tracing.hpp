// SPDX-License-Identifier: Apache-2.0
// Stops an ftrace instance at the moment a wake-up was too late, so that what led to it is kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "file.hpp"

namespace latenz::probe {

class TraceStopper {
 public:
  /// Stops nothing.
  TraceStopper() = default;

  /// Opens the files of the top instance of tracefs, or of a named one, once, before the run.
  /// Throws `Failure` if there is no tracefs, instance or snapshot, or no permission.
  TraceStopper(const std::string& instance, bool with_snapshot);

  /// Real-time thread: marks the place in the trace, turns tracing off, takes the snapshot.
  /// Only the first call of all threads has an effect, since tracing is off after it.
  void stop(unsigned cpu, std::int64_t latency_ns) const;

 private:
  File marker_;
  File tracing_on_;
  File snapshot_;
};

/// Where tracefs is mounted; throws `Failure` with the remedy if it is not, and the option that
/// needs it.
[[nodiscard]] std::filesystem::path find_tracefs(const std::string& option);

}  // namespace latenz::probe
