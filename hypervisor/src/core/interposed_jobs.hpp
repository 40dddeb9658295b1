// SPDX-License-Identifier: Apache-2.0
// The interposed jobs that a partition may get for IRQs that the monitor accepted. Freestanding.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace latenz::hypervisor {

/// One budget for each accepted IRQ, in the order of acceptance. Two indices into them:
///
///   unspent_   before it, the budget is spent, or its IRQ has ended without it
///   ready_     before it, no job is ready: it has started, or was dropped
///
/// What is behind either of them is kept. Dropping jobs and making them ready again moves an index,
/// whatever their number: nothing here has a loop.
///
/// Capacity is that of the partition's queue.
template <std::size_t Capacity>
class InterposedJobs {
 public:
  static_assert(std::has_single_bit(Capacity), "positions are masked");

  /// Those behind unspent_ are of pending IRQs, for which the queue has room.
  [[nodiscard]] bool full() const { return end_ - ready_ == Capacity; }

  [[nodiscard]] bool any_ready() const { return ready_ != end_; }

  /// When the oldest ready job was made ready, compared with those of other partitions; only if
  /// there is one.
  [[nodiscard]] std::uint64_t oldest() const {
    return ready_ < released_end_ ? released_ : jobs_[ready_ & mask].order;
  }

  /// An accepted IRQ that came in a foreign slot: its job is ready. Only if not full.
  void add_ready(std::uint64_t irq, std::uint16_t source, std::uint64_t order) {
    jobs_[end_++ & mask] = {.order = order, .irq = irq, .source = source};
  }

  /// An accepted IRQ that came in the partition's own slot, where no job is ready.
  void add_unready(std::uint64_t irq, std::uint16_t source) {
    add_ready(irq, source, 0);
    ready_ = end_;
  }

  /// Starts the oldest ready job: its budget is spent. Returns the source that it was granted to.
  std::uint16_t start() {
    const std::uint16_t source = jobs_[ready_ & mask].source;
    ++ready_;
    unspent_ = unspent_ < ready_ ? ready_ : unspent_;
    return source;
  }

  /// R5: the partition's own slot begins.
  void drop_ready() { ready_ = end_; }

  /// Mode carry: the partition's own slot has ended; accepted IRQs that are pending get their jobs.
  void release(std::uint64_t order) {
    ready_ = unspent_;
    released_end_ = end_;
    released_ = order;
  }

  /// The bottom handler of the IRQ at this position of the queue has ended: if its budget is not
  /// spent, it is not needed any more. (A job that is ready goes on to exist.)
  void complete(std::uint64_t irq) {
    if (unspent_ != end_ && jobs_[unspent_ & mask].irq == irq) ++unspent_;
  }

  void clear() { unspent_ = ready_ = end_; }

 private:
  static constexpr std::uint64_t mask = Capacity - 1;

  struct Job {
    std::uint64_t order = 0;
    std::uint64_t irq = 0;  ///< position in the partition's queue
    std::uint16_t source = 0;
  };

  std::uint64_t unspent_ = 0;
  std::uint64_t ready_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t released_end_ = 0;  ///< jobs before this one were made ready together
  std::uint64_t released_ = 0;
  std::array<Job, Capacity> jobs_;
};

}  // namespace latenz::hypervisor
