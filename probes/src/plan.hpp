// SPDX-License-Identifier: Apache-2.0
// What one run of latenz-wakeup is asked to do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::probe {

enum class Policy : std::uint8_t { fifo, rr, deadline, other, batch, idle };
enum class Keep : std::uint8_t { samples, histogram };
enum class Clock : std::uint8_t { monotonic, realtime };
enum class Context : std::uint8_t { exact, window };

inline constexpr std::array<std::string_view, 6> policy_names{"fifo",  "rr",    "deadline",
                                                              "other", "batch", "idle"};
inline constexpr std::array<std::string_view, 2> keep_names{"samples", "histogram"};
inline constexpr std::array<std::string_view, 2> clock_names{"monotonic", "realtime"};
inline constexpr std::array<std::string_view, 2> context_names{"exact", "window"};

template <typename Choice, std::size_t count>
[[nodiscard]] constexpr std::string_view name_of(Choice choice,
                                                 const std::array<std::string_view, count>& names) {
  return names[static_cast<std::size_t>(choice)];
}

struct Plan {
  std::filesystem::path output;
  std::vector<unsigned> cpus;  ///< one thread each; a CPU may come more than once
  Policy policy = Policy::fifo;
  int priority = 80;  ///< for policies with one
  Clock clock = Clock::monotonic;
  std::int64_t interval_ns = 1'000'000;
  std::optional<std::int64_t> duration_ns;
  std::optional<std::int64_t> count;  ///< samples of each thread
  std::int64_t warm_up_ns = 100'000'000;
  std::optional<std::int64_t> offset_ns;       ///< between the threads; absent: spread evenly
  std::optional<std::int32_t> dma_latency_us;  ///< absent: left alone
  Keep keep = Keep::samples;
  Context context = Context::exact;
  std::size_t worst = 10;
  std::optional<std::int64_t> break_above_ns;
  std::string trace_instance;
  bool trace_snapshot = false;
  bool progress = false;
  bool mark_clock = false;  ///< nothing is measured
  bool help = false;
  bool version = false;

  [[nodiscard]] int clock_id() const;

  /// Whether threads stay on the CPUs they are given: the kernel refuses that to SCHED_DEADLINE.
  [[nodiscard]] bool is_pinned() const { return policy != Policy::deadline; }

  /// First due time of a thread, from that of the first one.
  [[nodiscard]] std::int64_t offset_of(std::size_t thread) const;

  /// How long the run lasts after the warm-up, if that is known.
  [[nodiscard]] std::optional<std::int64_t> total_ns() const;
};

/// Reads the command line (without the program's name). Throws `Failure`.
[[nodiscard]] Plan parse_plan(std::span<const char* const> arguments);

[[nodiscard]] std::string plan_help();

/// Microseconds of an option --dma-latency, absent for "off". Throws `Failure`.
[[nodiscard]] std::optional<std::int32_t> parse_dma_latency(std::string_view text);

/// Whether a policy has real-time priorities.
[[nodiscard]] constexpr bool has_priority(Policy policy) {
  return policy == Policy::fifo || policy == Policy::rr;
}

/// Folder of each thread below the output folder: cpu0, cpu1, and cpu0-2 for the second on CPU 0;
/// thread0, thread1 of threads that have no CPU of their own.
[[nodiscard]] std::vector<std::string> thread_folders(const Plan& plan);

}  // namespace latenz::probe
