// SPDX-License-Identifier: Apache-2.0
// The IRQs of one partition whose bottom handlers have not ended, first in, first out (rule R4).
// Freestanding.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "latenz/handling.hpp"
#include "latenz/time.hpp"

namespace latenz::hypervisor {

struct PendingIrq {
  Instant arrival;
  Instant top_start;  ///< of its top handler
  std::uint16_t source = 0;
  Handling handling = Handling::direct;
  bool timed = false;  ///< otherwise it once found the queue full, and its times were not kept
};

/// A ring with room for so many. Positions count all that were ever pushed.
template <std::size_t Capacity>
class IrqQueue {
 public:
  static_assert(std::has_single_bit(Capacity), "positions are masked");

  [[nodiscard]] bool empty() const { return first_ == end_; }
  [[nodiscard]] bool full() const { return end_ - first_ == Capacity; }
  [[nodiscard]] std::uint64_t size() const { return end_ - first_; }
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }

  /// The one whose bottom handler runs or is next; only if there is one.
  [[nodiscard]] const PendingIrq& head() const { return irqs_[first_ & mask]; }

  /// Only if not full. Member by member: compilers call for a copy of what ends in padding.
  void push(const PendingIrq& irq) {
    PendingIrq& place = irqs_[end_++ & mask];
    place.arrival = irq.arrival;
    place.top_start = irq.top_start;
    place.source = irq.source;
    place.handling = irq.handling;
    place.timed = irq.timed;
  }

  /// Only if not empty.
  void pop() { ++first_; }

  void clear() { first_ = end_; }

 private:
  static constexpr std::uint64_t mask = Capacity - 1;

  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  std::array<PendingIrq, Capacity> irqs_;
};

}  // namespace latenz::hypervisor
