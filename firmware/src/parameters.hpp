// SPDX-License-Identifier: Apache-2.0
// What a measurement is to be like. The host finds the block in the image by its magic, changes it
// and its checksum (latenz.boards.firmware); docs/firmware.md has the byte table.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "latenz/crc32.hpp"

namespace latenz::firmware {

enum class Arrivals : std::uint32_t { periodic, exponential };
enum class Wait : std::uint32_t { poll, wfi };
enum class TimerChoice : std::uint32_t { automatic, generic, ttc, dual };
enum class Delivery : std::uint32_t { automatic, interrupt, polled };
enum class Provoke : std::uint32_t { nothing, undefined_instruction, hang };

struct Parameters {
  static constexpr std::uint32_t current_version = 1;
  static constexpr std::size_t max_samples = 100'000;  ///< with warm-up

  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t size;             ///< bytes of the block with its checksum
  std::uint32_t samples;          ///< to be reported
  std::uint32_t warm_up;          ///< to be taken before and forgotten
  std::uint64_t period_ns;        ///< or mean of exponential arrivals
  std::uint64_t min_distance_ns;  ///< exponential arrivals: no gap is shorter
  std::uint64_t seed;             ///< of exponential arrivals
  std::uint64_t start_after_ns;   ///< no event before
  Arrivals arrivals;
  Wait wait;
  TimerChoice timer;
  Delivery delivery;
  std::uint32_t timer_hz;       ///< clock of a timer that cannot tell; 0: the board's
  std::uint32_t sender;         ///< in the frames
  Provoke provoke;              ///< to test who listens
  std::uint32_t await_command;  ///< 1: wait for `start` in the control block (control_block.hpp)
  std::uint32_t reserved;       ///< 0
  std::uint32_t crc;            ///< CRC-32 of all before

  /// The checksum the block should have.
  [[nodiscard]] constexpr std::uint32_t expected_crc() const {
    Crc32 sum;
    const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(Parameters)>>(*this);
    for (std::size_t i = 0; i < offsetof(Parameters, crc); ++i) sum.add(bytes[i]);
    return sum.value();
  }

  /// What is wrong, or nothing.
  [[nodiscard]] std::string_view problem() const;
};

static_assert(sizeof(Parameters) == 96, "the layout is documented");
static_assert(offsetof(Parameters, crc) == 92, "no padding hides");

/// The block in this image.
const Parameters& parameters();

}  // namespace latenz::firmware
