// SPDX-License-Identifier: Apache-2.0
// What the two programs are to do together. The host finds the block in both images by its magic,
// and changes it and its checksum (latenz.boards.pair_firmware); docs/pair.md has the byte table.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "latenz/crc32.hpp"

namespace latenz::pair {

enum class Kind : std::uint32_t { measure, check, unlike, restart };
enum class Through : std::uint32_t { raw, mailbox, exchange, latest, ring, interrupt, rpmsg };
enum class Memory : std::uint32_t { ocm, ddr, ddr_cci, tcm };
enum class Direction : std::uint32_t { there, back };
enum class Wait : std::uint32_t { poll, doorbell };
enum class Load : std::uint32_t { none, spin, memory };

struct Task {
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::uint32_t max_samples = 100'000;  ///< measured, with warm-up

  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t size;  ///< bytes of the block with its checksum
  Kind kind;
  Through through;        ///< `measure` only: the other tasks take all channels in turn
  std::uint32_t bytes;    ///< of a measured message: a power of two from 1 to 4096
  std::uint32_t samples;  ///< round trips; `restart`: points, of each kind of channel
  std::uint32_t warm_up;  ///< measured before and forgotten
  Memory memory;
  Direction direction;     ///< `there`: the Cortex-A53 begins
  Load load;               ///< on the second Cortex-A53
  std::uint32_t seed;      ///< of payloads and of points of restarts
  std::uint32_t restarts;  ///< `restart`: 0: who begins, 1: who answers
  Wait wait;               ///< `measure` by a mailbox, an exchange, a ring or rpmsg
  std::uint32_t crc;       ///< CRC-32 of all before

  /// The checksum the block should have.
  [[nodiscard]] constexpr std::uint32_t expected_crc() const {
    Crc32 sum;
    const auto all = std::bit_cast<std::array<std::uint8_t, sizeof(Task)>>(*this);
    for (std::size_t i = 0; i < offsetof(Task, crc); ++i) sum.add(all[i]);
    return sum.value();
  }

  /// What is wrong, or nothing.
  [[nodiscard]] std::string_view problem() const;
};

static_assert(sizeof(Task) == 64, "the layout is documented");

/// The block in this image.
const Task& task();

}  // namespace latenz::pair
