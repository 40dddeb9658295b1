// SPDX-License-Identifier: Apache-2.0
// Operands of cache maintenance by set and way (Arm Architecture Reference Manual, DC CISW).
// Freestanding.
#pragma once

#include <bit>
#include <cstdint>

namespace latenz::hypervisor {

/// The caches of data of a processor: level by level, as CLIDR_EL1 and CCSIDR_EL1 tell.
class CacheLines {
 public:
  static constexpr unsigned most_levels = 7;

  /// Whether a level has a cache for data, by CLIDR_EL1. `level` counts from 0.
  static constexpr bool holds_data(std::uint64_t clidr, unsigned level) {
    return ((clidr >> (3 * level)) & 7U) >= 2;
  }

  /// Takes the size of a level's cache, by CCSIDR_EL1 in its 32 bit format.
  constexpr void add(unsigned level, std::uint64_t ccsidr) {
    level_[level] = {.ways = static_cast<std::uint32_t>((ccsidr >> 3U) & 0x3FFU) + 1,
                     .sets = static_cast<std::uint32_t>((ccsidr >> 13U) & 0x7FFFU) + 1,
                     .line_shift = static_cast<std::uint32_t>(ccsidr & 7U) + 4};
  }

  /// Whether an operand names a line that exists. For another one the processor may do anything,
  /// take an undefined instruction too.
  [[nodiscard]] constexpr bool exists(std::uint64_t operand) const {
    const std::uint64_t level = (operand >> 1U) & 7U;
    if ((operand & 1U) != 0 || operand > UINT32_MAX || level >= most_levels) return false;
    const Level& each = level_[level];
    if (each.ways == 0) return false;
    const auto way_bits = static_cast<unsigned>(std::bit_width(each.ways - 1));
    const unsigned way_shift = 32 - way_bits;
    const std::uint64_t way = operand >> way_shift;
    const std::uint64_t below = operand & ((1ULL << way_shift) - 1);
    const std::uint64_t gap = (below & ((1ULL << each.line_shift) - 1)) >> 4U;
    return gap == 0 && way < each.ways && (below >> each.line_shift) < each.sets;
  }

 private:
  struct Level {
    std::uint32_t ways;
    std::uint32_t sets;
    std::uint32_t line_shift;
  };
  Level level_[most_levels]{};
};

}  // namespace latenz::hypervisor
