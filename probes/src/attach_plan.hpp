// SPDX-License-Identifier: Apache-2.0
// Command line of latenz-attach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "attach_place.hpp"

namespace latenz::attach {

struct Plan {
  std::filesystem::path output;
  std::vector<std::int32_t> processes;
  std::vector<std::int32_t> threads;  ///< only these of the processes; empty: all
  std::vector<PlaceName> begins;      ///< where a cycle begins; empty: with a wake-up, or as marked
  std::vector<PlaceName> ends;        ///< where it ends
  std::string glob;                   ///< only threads with such names; empty: all
  std::int64_t duration_ns = 0;       ///< from the first cycle on; 0: until a signal
  std::int64_t learning_ns =
      10'000'000'000;  ///< the longest time in which a period must show itself
  std::size_t worst = 10;
  bool count_cost = false;
  std::string trace;  ///< a recorded trace instead of the running kernel; empty: none
  bool help = false;
  bool version = false;
};

/// Throws `probe::Failure`.
[[nodiscard]] Plan parse_plan(std::span<const char* const> arguments);
[[nodiscard]] std::string plan_help();

}  // namespace latenz::attach
