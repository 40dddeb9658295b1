// SPDX-License-Identifier: Apache-2.0
// When a guest's next own slot begins, by the slot table of its information page. Freestanding.
#pragma once

#include <cstdint>

#include "latenz/guest_machine.hpp"

namespace latenz::hypervisor {

/// @return that many nanoseconds in whole ticks, or ticks in whole nanoseconds; rounded down
constexpr std::uint64_t scaled(std::uint64_t count, std::uint64_t from_hz, std::uint64_t to_hz) {
  return (count / from_hz * to_hz) + (count % from_hz * to_hz / from_hz);
}

/// Tick of the counter at which the next slot of the page's partition begins, after the one that
/// is given; 0 if it has no slots. The edges are the hypervisor's: whole sums of lengths, rounded
/// down to a tick. Not for ticks before the first slot.
constexpr std::uint64_t next_own_slot(const InformationPage& page, std::uint64_t tick) {
  constexpr std::uint64_t second_ns = 1'000'000'000;
  constexpr std::uint64_t cycles_to_look = 3;  // for what was rounded
  if (page.cycle_ns == 0) return 0;
  const std::uint64_t elapsed_ns = scaled(tick - page.first_slot, page.counter_hz, second_ns);
  std::uint64_t cycle_ns = elapsed_ns / page.cycle_ns * page.cycle_ns;
  for (std::uint64_t i = 0; i < cycles_to_look; ++i, cycle_ns += page.cycle_ns) {
    for (std::uint32_t slot = 0; slot < page.slots; ++slot) {
      if (page.slot[slot].partition != page.partition) continue;
      const std::uint64_t offset_ns = cycle_ns + page.slot[slot].offset_ns;
      const std::uint64_t begins = page.first_slot + scaled(offset_ns, second_ns, page.counter_hz);
      if (begins > tick) return begins;
    }
  }
  return 0;
}

}  // namespace latenz::hypervisor
