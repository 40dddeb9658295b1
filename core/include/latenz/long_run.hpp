// SPDX-License-Identifier: Apache-2.0
// Work in the long run, as a share of the processor's time. Used on a host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "latenz/system.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// A share of the processor's time, in 1 / 10^12.
__extension__ using Share = __int128;

/// What takes `each` for every one of `events` in every `window`, rounded down; more than any
/// processor has if the window is 0.
[[nodiscard]] constexpr Share share(Duration each, Count events, Duration window) {
  constexpr std::int64_t whole = 1'000'000'000'000;
  if (each == Duration()) {
    return 0;
  }
  if (window == Duration()) {
    return std::numeric_limits<std::int64_t>::max();
  }
  // each < 2^63 and events <= 64, so only `whole` needs care: 2^63 * 64 * 10^12 < 2^109.
  const Share work = Share{each.ns()} * events * whole;
  constexpr Share narrow = std::numeric_limits<std::int64_t>::max();
  // divisions of 64 bits are several times faster
  return work <= narrow ? static_cast<std::int64_t>(work) / window.ns() : work / window.ns();
}

/// What takes `each` for every event, these as often as a model allows.
template <typename Model>
[[nodiscard]] constexpr Share share(Duration each, const Model& model) {
  return share(each, model.rate_events(), model.rate_window());
}

/// What a source's top handlers take in the long run by their cost curve, each with something
/// `added`: never less than its best row takes an execution.
[[nodiscard, gnu::noinline]] inline Share share_by_curve(const CostCurve& top_sums,
                                                         const EventModel& arrival,
                                                         Duration added) {
  const Count row = top_sums.rate_events();
  const Duration each_row = top_sums.rate_cost() + (added * row);
  return share(each_row, arrival.rate_events(), arrival.rate_window() * row);
}

/// What a source's top handlers take in the long run, each with something `added`, if its IRQs come
/// as often as its model allows.
[[nodiscard, gnu::always_inline]] inline Share share_of_tops(const Source& source, Duration added) {
  return source.top_sums ? share_by_curve(*source.top_sums, source.arrival, added)
                         : share(source.top + added, source.arrival);
}

/// Whether a queue grows without end when every source comes as often as its model allows, for
/// which two proofs are tried: all bottom handlers of the partition and all top handlers need more
/// than the processor has besides slot switches; or the bottom handlers need more than their own
/// slots and what interposed jobs may execute. The queue is first in, first out, so then the
/// latency of each of its sources grows without end.
///
/// @param own_slots what the partition has of each cycle
[[nodiscard]] inline bool grows_without_end(const System& system, Mode mode,
                                            std::uint32_t partition, Duration own_slots) {
  Share bottoms = 0;
  Share tops = 0;
  Share jobs = 0;
  for (const Source& source : system.sources()) {
    // in mode paper the monitor is not asked in own slots
    tops +=
        share_of_tops(source, mode == Mode::carry ? system.asking_cost(source, mode) : Duration());
    if (source.partition != partition) {
      continue;
    }
    const Share bottom = share(source.bottom, source.arrival);
    bottoms += bottom;
    if (source.monitor && System::interposed(source, mode)) {
      jobs += std::min(bottom, share(source.bottom, *source.monitor)) + 1;  // rounded up
    }
  }
  const Duration cycle = system.table().cycle();
  const auto slots = static_cast<Count>(system.table().slots().size());
  const Duration switches = system.table().slot_switch() * slots;
  return bottoms + tops > share(cycle - switches, 1, cycle) + 1 ||
         bottoms > share(own_slots, 1, cycle) + 1 + jobs;
}

}  // namespace latenz
