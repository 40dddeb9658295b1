// SPDX-License-Identifier: Apache-2.0
// Latencies as a file may hold them, in the statistics that every reader ends in: whatever the
// values, order statistics and extremes must be those of the sorted list.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "latenz/histogram.hpp"
#include "latenz/moments.hpp"
#include "latenz/sample_scan.hpp"
#include "target.hpp"

namespace latenz::fuzz {
namespace {

constexpr std::size_t most = 512;

std::vector<std::int64_t> numbers_of(Input input) {
  std::vector<std::int64_t> numbers(std::min(input.size() / sizeof(std::int64_t), most));
  if (!numbers.empty())
    std::memcpy(numbers.data(), input.data(), numbers.size() * sizeof(std::int64_t));
  return numbers;
}

void scan(const std::vector<std::int64_t>& values, std::int64_t base) {
  static std::array<std::uint64_t, 4096> window;
  static std::vector<std::uint64_t> below(SampleScan::outside.cells());
  static std::vector<std::uint64_t> above(SampleScan::outside.cells());
  static std::array<std::int64_t, 16> spill;
  for (const std::span<std::uint64_t> cells :
       {std::span<std::uint64_t>(window), std::span(below), std::span(above)}) {
    std::ranges::fill(cells, 0);
  }
  SampleScan scan({.window = window.data(),
                   .window_cells = window.size(),
                   .below = below.data(),
                   .above = above.data(),
                   .spill = spill.data(),
                   .spill_capacity = spill.size()},
                  base);
  scan.add(values.data(), values.size());
  auto sorted = values;
  std::ranges::sort(sorted);
  const Moments moments = scan.moments();
  require(moments.n() == sorted.size(), "all samples are counted");
  require(moments.min() == sorted.front() && moments.max() == sorted.back(), "extremes are exact");
  static_cast<void>(moments.mean());
  static_cast<void>(moments.jitter());
  static_cast<void>(moments.variance());
  const std::size_t rank = 1 + static_cast<std::uint64_t>(base) % sorted.size();
  const RankInterval found = scan.locate(rank);
  const std::int64_t value = sorted[rank - 1];
  require(found.lowest <= value && value <= found.highest, "a rank lies where it was located");
  require(found.before < rank && rank <= found.before + found.within, "and so do its counts");
}

void record(const std::vector<std::int64_t>& values, std::uint8_t digits, std::uint64_t highest) {
  constexpr std::uint64_t largest = 1ULL << 24U;
  if (highest > largest || !HistogramLayout::valid(1, highest, digits)) return;
  const HistogramLayout layout(1, highest, digits);
  std::vector<std::uint64_t> counts(layout.cells());
  Histogram histogram(layout, counts.data());
  std::uint64_t recorded = 0;
  for (const std::int64_t value : values) recorded += histogram.record(value) ? 1 : 0;
  require(histogram.n() == recorded, "what was recorded is counted");
  if (recorded == 0) return;
  require(histogram.cell_of_rank(1) <= histogram.cell_of_rank(recorded), "ranks ascend");
  require(histogram.cell_of_rank(recorded) < layout.cells(), "the last rank is in a cell");
}

}  // namespace

void read_input(Input input) {
  const std::vector<std::int64_t> numbers = numbers_of(input);
  if (numbers.size() < 2) return;
  const std::vector<std::int64_t> values(numbers.begin() + 1, numbers.end());
  scan(values, numbers.front());
  record(values, static_cast<std::uint8_t>(input.front() % 4),
         static_cast<std::uint64_t>(numbers.front()));
}

}  // namespace latenz::fuzz
