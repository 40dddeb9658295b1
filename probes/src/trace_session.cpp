// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace_event.hpp"

namespace latenz::trace {

namespace {

__extension__ using Wide = __int128;

/// Between two samples, or beyond them on the same line.
std::int64_t interpolated(std::uint64_t stamp, const Session::Sample& a, const Session::Sample& b) {
  constexpr Wide largest = Wide{1} << 62U;  // so that no product overflows; damaged files go beyond
  const Wide length = static_cast<Wide>(b.time) - a.time;
  const Wide since = static_cast<Wide>(static_cast<std::int64_t>(stamp)) - a.time;
  const Wide growth = static_cast<Wide>(b.offset) - a.offset;
  const bool is_sane =
      length > 0 && since < largest && since > -largest && growth < largest && growth > -largest;
  if (!is_sane) return a.offset;
  return static_cast<std::int64_t>(a.offset + (since * growth + length / 2) / length);
}

}  // namespace

std::uint64_t Session::on_host(std::uint64_t stamp, int cpu) const {
  const auto place = static_cast<std::size_t>(cpu);
  if (place >= shifts.size() || shifts[place].empty()) return stamp;
  const std::vector<Sample>& samples = shifts[place];
  const auto after =
      std::ranges::upper_bound(samples, static_cast<std::int64_t>(stamp), {}, &Sample::time);
  const auto passed = static_cast<std::size_t>(after - samples.begin());
  const std::size_t last = samples.size() < 2 ? 0 : samples.size() - 2;
  const std::size_t at = std::min(passed == 0 ? 0 : passed - 1, last);
  const Sample& known = samples[at];  // of the two that the stamp lies between, the first
  const auto scaled = static_cast<std::uint64_t>(
      (static_cast<Wide>(stamp) * static_cast<std::int64_t>(known.scaling)) >> known.fraction);
  const bool is_line = interpolates && samples.size() > 1;
  const std::int64_t offset = is_line ? interpolated(stamp, known, samples[at + 1]) : known.offset;
  return scaled + static_cast<std::uint64_t>(offset);
}

}  // namespace latenz::trace
