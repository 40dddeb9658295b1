// SPDX-License-Identifier: Apache-2.0
// QEMU's cycle counters both count virtual nanoseconds, but from when they were started. How far
// they are apart is found as time servers are asked: of many exchanges of times the fastest ones
// there and back bound the difference, and take equally long as far as anybody knows.
#include "clocks.hpp"

#include "meeting.hpp"
#include "side.hpp"

namespace latenz::pair {
namespace {

constexpr std::uint32_t rounds = 16;

std::uint32_t ahead = 0;      ///< of the other side's clock
std::uint32_t both_ways = 0;  ///< the fastest exchange

void tell(std::uint32_t round) {
  Meeting::times.own().write(CycleCounter::now());
  Meeting::marks.own().write(round);
  Side::give_way();
}

/// How long ago the other side's time was, by the difference of both clocks.
std::uint32_t hear(std::uint32_t round) {
  Meeting::marks.other().await(round);
  return CycleCounter::now() - Meeting::times.other().read();
}

}  // namespace

const char* Clocks::name() { return "cycle counters"; }
std::uint32_t Clocks::hz() { return 1'000'000'000; }

void Clocks::start() {
  CycleCounter::start();
  Meeting::marks.own().write(0);
  Meeting::step();
  std::uint32_t fastest = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    if (Side::first) tell(round);
    const std::uint32_t behind = hear(round);
    if (round == 1 || static_cast<std::int32_t>(behind - fastest) < 0) fastest = behind;
    if (!Side::first) tell(round);
  }
  Meeting::step();
  Meeting::times.own().write(fastest);
  Meeting::step();
  both_ways = fastest + Meeting::times.other().read();
  ahead = fastest - (both_ways / 2);
}

std::uint32_t Clocks::now() { return CycleCounter::now(); }
std::uint32_t Clocks::own_time(std::uint32_t others) { return others + ahead; }
std::uint32_t Clocks::doubt() { return both_ways / 2; }

}  // namespace latenz::pair
