// SPDX-License-Identifier: Apache-2.0
// How a hostile guest takes its interrupts.
#pragma once

#include <cstdint>

namespace latenz::guests {

enum class Manners : std::uint32_t {
  good,         ///< ends each at once
  stops_timer,  ///< ends each, its own timer's with its reason: else that would come again at once
  endless,      ///< never leaves the first one
  never_ends    ///< leaves it, and never tells the GIC
};

/// Lets through those of all sources and of the virtual timer.
void start_interrupts();

void behave(Manners manners);

}  // namespace latenz::guests
