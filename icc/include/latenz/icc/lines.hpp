// SPDX-License-Identifier: Apache-2.0
// Which side of a channel writes which of its lines: `X::lines()` of each channel, for planning
// regions and for people who look at the memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/channel.hpp"

namespace latenz::icc {

/// Who writes a line. Never two sides at the same time: so each line may be cached by both and
/// cleaned by its writer without overwriting what the other side has stored.
enum class LineOwner : std::uint8_t {
  creator,      ///< the side that creates the channel, before anybody attaches
  side,         ///< one side, always
  each_reader,  ///< the first line reader 0, the next one reader 1, ...
  in_turn,      ///< one side hands them to the other: the protocol's control word says whose
};

/// Lines that have the same owner.
struct LineRun {
  std::uint32_t offset = 0;  ///< in bytes, from the start of the channel
  std::uint32_t bytes = 0;
  LineOwner owner = LineOwner::creator;
  std::uint8_t side = 0;  ///< of `LineOwner::side`: 0 the writing side or client, then the others
  const char* part = "";
};

namespace detail {

/// The lines of a channel: the header that all have in common, then its own.
template <std::size_t sides, class... Run>
constexpr std::array<LineRun, 1 + sides + sizeof...(Run)> lines_of(const Shape& shape,
                                                                   const Run&... own) noexcept {
  std::array<LineRun, 1 + sides + sizeof...(Run)> runs{};
  const std::size_t offset = sides_offset(shape.field_count[0] + shape.field_count[1]);
  runs[0] = {.bytes = static_cast<std::uint32_t>(offset), .part = "identity and fields"};
  for (std::size_t side = 0; side < sides; ++side) {
    runs[1 + side] = {.offset = static_cast<std::uint32_t>(offset + side * sizeof(Side)),
                      .bytes = sizeof(Side),
                      .owner = LineOwner::side,
                      .side = static_cast<std::uint8_t>(side),
                      .part = "presence and pulse"};
  }
  std::size_t next = 1 + sides;
  ((runs[next++] = own), ...);
  return runs;
}

}  // namespace detail
}  // namespace latenz::icc
