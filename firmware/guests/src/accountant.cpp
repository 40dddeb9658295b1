// SPDX-License-Identifier: Apache-2.0
// A partition that answers its interrupts, and whenever none is pending says on its console what
// the hypervisor has counted of it: each Statistic, in their order.
#include <array>
#include <cstddef>
#include <cstdint>

#include "bottom_handlers.hpp"
#include "guest.hpp"
#include "latenz/text.hpp"

namespace latenz::guests {
namespace {

using hypervisor::Statistic;

using Counts = std::array<std::int64_t, static_cast<std::size_t>(Statistic::restarts) + 1>;

Counts counts() {
  Counts found;
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = call(Hypercall::statistics, i);
  return found;
}

void tell(const Counts& found) {
  Text<200> text;
  text.add("counted");
  for (const std::int64_t each : found) text.add(" ").add(static_cast<std::uint64_t>(each));
  say(text.add("\n").view());
}

}  // namespace

extern "C" [[noreturn]] void firmware_main() {
  start_bottom_handlers();
  const bool refused =
      call(Hypercall::statistics, Counts{}.size()) == Hypercall::invalid_parameters;
  say(refused ? "refused\n" : "answered what there is not\n");
  Counts told{};
  while (true) {
    const Counts found = counts();
    if (found == told || found[static_cast<std::size_t>(Statistic::pending)] != 0) continue;
    tell(found);
    told = found;
  }
}

}  // namespace latenz::guests
