// SPDX-License-Identifier: Apache-2.0
// The two measuring processes, and the memory through which they give their samples to a third.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intercore_case.hpp"
#include "intercore_plan.hpp"
#include "intercore_stamps.hpp"
#include "measuring_thread.hpp"

namespace latenz::probe {

/// What blocks measure, in this order in each round.
enum class BlockKind : std::uint8_t {
  raw,        ///< half a round trip of the raw limit
  half_trip,  ///< half a round trip of the case
  one_way     ///< the way there, stamped on both CPUs
};
inline constexpr std::array<std::string_view, 3> block_kind_names{"raw", "half-round-trip",
                                                                  "one-way"};
inline constexpr std::size_t block_kinds = block_kind_names.size();

/// Links of each kind, in memory of their own, which take turns from round to round: how fast two
/// processors pass a cache line depends on its address, by 15 % and more.
inline constexpr std::size_t placements = 16;

/// Medians of the round trips of two blocks that followed each other.
struct Round {
  std::int64_t raw_ticks;
  std::int64_t case_ticks;
};

/// Anonymous shared memory, all of it in place from the start.
class SharedMemory {
 public:
  /// Throws `Failure` if there is not enough.
  explicit SharedMemory(std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// What the processes tell each other, each word on lines of one writing process.
struct Control {
  // The asking process:
  alignas(cache_line) std::atomic<std::uint32_t> block{0};  ///< to answer next, from 1
  std::atomic<std::uint32_t> rounds{0};                     ///< finished ones
  std::array<std::atomic<std::uint32_t>, block_kinds> samples{};
  std::atomic<std::uint64_t> damaged{0};
  std::atomic<std::int64_t> asking_switches{0};  ///< involuntary context switches
  // The answering process:
  alignas(cache_line) std::atomic<std::uint32_t> answering{0};  ///< block it is ready for
  std::atomic<std::int64_t> answering_switches{0};
  // The watching process:
  alignas(cache_line) std::atomic<std::uint32_t> stop{0};
  // Whichever cannot go on:
  alignas(cache_line) std::array<char, 256> failure{};
};

/// All that the two processes need; made before they exist, and the same in each of them.
class Measurement {
 public:
  /// Throws `Failure` if memory is short, or the kernel does not have what carries the messages.
  explicit Measurement(const IntercorePlan& plan);

  /// The whole life of a measuring process; does not return.
  [[noreturn]] void be(LinkSide side);

  [[nodiscard]] Control& control() const { return *control_; }
  [[nodiscard]] const Stamps& stamps() const { return stamps_; }
  /// Samples of a kind that are complete.
  [[nodiscard]] std::span<const Sample> samples(std::size_t kind) const;
  [[nodiscard]] std::span<const Round> rounds() const;

 private:
  void become_measuring_process(unsigned cpu) const;
  void ask_all();
  void answer_all();
  void open(LinkSide side);
  void ask_block(BlockKind kind, std::size_t round);
  void keep(BlockKind kind, std::span<const Trip> trips);
  [[nodiscard]] Case& case_of(BlockKind kind, std::size_t round) {
    const Placement& placement = placements_[round % placements];
    return kind == BlockKind::raw ? *placement.raw : *placement.measured;
  }
  [[nodiscard]] std::size_t block_count() const;
  [[nodiscard]] std::size_t trips_of(std::size_t round) const;

  struct Placement {
    std::unique_ptr<Case> raw;
    std::unique_ptr<Case> measured;
    std::span<std::byte> raw_memory;
    std::span<std::byte> measured_memory;
  };

  const IntercorePlan& plan_;
  pid_t parent_;
  Stamps stamps_;
  std::array<Placement, placements> placements_;
  SharedMemory memory_;
  Control* control_ = nullptr;
  std::span<std::int64_t> arrivals_;  ///< written by the answering process, a block at a time
  std::span<Round> rounds_;
  std::array<std::span<Sample>, block_kinds> samples_;

  // The asking process's own.
  std::vector<Trip> trips_;
  std::vector<std::int64_t> durations_;
  std::array<std::int64_t, block_kinds> median_ticks_{};
  Asking asking_{};
};

}  // namespace latenz::probe
