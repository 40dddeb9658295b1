// SPDX-License-Identifier: Apache-2.0
// Whether a configuration can be carried out. `latenz hypervisor build` makes only such; this is
// for blocks that were damaged or made by others. Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "configuration.hpp"

namespace latenz::hypervisor {

/// A range of physical addresses.
struct Range {
  std::uint64_t begin;
  std::uint64_t size;
};

/// What a board allows.
struct BoardRules {
  static constexpr std::size_t most = 16;

  std::uint32_t cpus;
  std::span<const Range> not_for_guests;  ///< at most `most`
};

/// What is wrong with it; nothing if it is fine.
std::string_view problem_of(const Configuration& configuration, const BoardRules& board);

/// The same for the list of arrivals, whose place is known to be in memory.
std::string_view problem_of_arrivals(const Configuration& configuration);

}  // namespace latenz::hypervisor
