// SPDX-License-Identifier: Apache-2.0
// Keeps a run of any length in bounded memory: histogram.json, replaced as a whole, and
// peaks.journal with the largest latency of each second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "journal_writer.hpp"
#include "latenz/histogram.hpp"

namespace latenz::probe {

/// Latencies in cells no wider than a thousandth of their value; also negative ones, which a
/// stepping CLOCK_REALTIME causes. Nothing is beyond its range.
class LatencyHistogram {
 public:
  LatencyHistogram();
  void record(std::int64_t latency_ns);

  struct Cell {
    std::int64_t lowest_ns;
    std::uint64_t width_ns;
    std::uint64_t count;
    bool operator==(const Cell&) const = default;
  };
  /// The cells that are not empty, ascending.
  [[nodiscard]] std::vector<Cell> cells() const;

 private:
  HistogramLayout layout_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> negative_counts_;  ///< at -1 - latency
};

/// Sum of any number of latencies, which may leave 64 bits.
class ExactSum {
 public:
  void add(std::int64_t value_ns);
  /// Nanoseconds, in decimal.
  [[nodiscard]] std::string text() const;

 private:
  std::int64_t seconds_ = 0;
  std::int64_t nanoseconds_ = 0;  ///< 0 to 999 999 999, on top of the seconds
};

class HistogramRecorder {
 public:
  /// Creates both files in `folder`. Throws `Failure`.
  HistogramRecorder(const std::filesystem::path& folder, std::optional<unsigned> cpu,
                    std::int64_t period_ns);

  /// Takes in samples, and writes the maximum of each second that is over. Returns 0 or errno.
  [[nodiscard]] int append(std::span<const Sample> samples);

  /// Replaces histogram.json if samples came in since the last time. Returns 0 or errno.
  [[nodiscard]] int save();

  /// Writes the maximum of the last second, which is not over. Returns 0 or errno.
  [[nodiscard]] int finish();

 private:
  void add(const Sample& sample);
  [[nodiscard]] std::string to_json() const;

  std::filesystem::path path_;
  std::optional<unsigned> cpu_;
  std::int64_t period_ns_;
  JournalWriter peaks_;
  std::optional<Sample> peak_;
  LatencyHistogram histogram_;
  std::int64_t n_ = 0;
  std::int64_t saved_n_ = -1;
  ExactSum sum_;
  std::int64_t missed_ = 0;
  std::int64_t last_due_ns_ = 0;
  std::int64_t min_ns_ = std::numeric_limits<std::int64_t>::max();
  Sample max_{.t_ns = 0, .latency_ns = std::numeric_limits<std::int64_t>::min()};
};

}  // namespace latenz::probe
