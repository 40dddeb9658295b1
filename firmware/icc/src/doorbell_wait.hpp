// SPDX-License-Identifier: Apache-2.0
// Waiting for a doorbell of the other processor in place of polling: the bell of `icc::Sleep`, and
// the kick of the peer that the channels are measured beside.
#pragma once

#include <cstdint>

#include "doorbell.hpp"
#include "here.hpp"
#include "platform.hpp"

namespace latenz::pair {

/// A side that cannot be called on this board polls, and is not called. Nobody is woken by time:
/// for measurements between two sides of which neither dies.
struct DoorbellBell {
  static void silence() { Doorbell::forget(); }
  static void ring(std::uint32_t /*side*/) {
    if (Here::can_ring()) Here::ring();
  }
  static void wait(const std::uint32_t& /*word*/, std::uint32_t /*value*/,
                   std::int64_t /*longest_ns*/) {
    wait();
  }

  /// As the peer wants it.
  static bool hears() { return Here::can_hear(); }
  static void ring() { ring(0); }
  static void wait() { Here::can_hear() ? Doorbell::await() : Waiting::pause(); }
};

/// Looks each 10 us as it were, which makes a peer that answers within some seconds not silent.
using Belled = icc::Platform<Uncached, icc::ArmSystemOrder, icc::Sleep<DoorbellBell, 10'000>>;

/// The peer's kick where nobody waits for a doorbell.
struct NoBell {
  static bool hears() { return false; }
  static void ring() {}
  static void wait() { Waiting::pause(); }
};

}  // namespace latenz::pair
