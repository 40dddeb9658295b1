// SPDX-License-Identifier: Apache-2.0
// What latenz-intercore was asked to do.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::probe {

/// What carries the messages.
enum class Through : std::uint8_t {
  raw,
  mailbox,
  exchange,
  latest,
  ring,
  boost_spsc,
  eventfd,
  pipe,
  futex,
  posix_mq
};
inline constexpr std::array<std::string_view, 10> through_names{
    "raw",        "mailbox", "exchange", "latest", "ring",
    "boost-spsc", "eventfd", "pipe",     "futex",  "posix-mq"};

/// What a side that polls does between two looks.
enum class Waiting : std::uint8_t { spin, pause };
inline constexpr std::array<std::string_view, 2> waiting_names{"spin", "pause"};

inline constexpr std::size_t most_message_bytes = 4096;

struct IntercorePlan {
  std::filesystem::path output;
  Through through = Through::exchange;
  std::size_t bytes = 8;  ///< of a message, a power of two; 0: a signal without one
  std::size_t samples = 10'000;
  std::size_t block = 0;       ///< round trips in a row
  std::vector<unsigned> cpus;  ///< two: the one that asks, the one that answers
  Waiting wait = Waiting::pause;
  bool progress = false;
  bool help = false;
  bool version = false;
};

/// Parses and checks a command line; throws `Failure`.
[[nodiscard]] IntercorePlan parse_intercore_plan(std::span<const char* const> arguments);

[[nodiscard]] std::string intercore_help();

}  // namespace latenz::probe
