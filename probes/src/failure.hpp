// SPDX-License-Identifier: Apache-2.0
// What ends a program before its work is done: one line for the user and an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace latenz::probe {

inline constexpr int exit_threshold = 1;  ///< a wake-up was above --break-above
inline constexpr int exit_bad_input = 2;  ///< wrong usage, or a privilege is missing
inline constexpr int exit_output_failed =
    4;  ///< disk full or not writable; earlier samples are kept

/// Wrong input or a missing privilege: `what()` is one line with the place and the remedy.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& line) : std::runtime_error(line) {}
};

}  // namespace latenz::probe
