// SPDX-License-Identifier: Apache-2.0
// What two processes that talk by a channel, and the one that kills them, write down outside of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace latenz::icc::kill {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free, "it is shared by processes");

/// Memory of all processes, all zero at first; no death sets any of it back.
struct Ledger {
  static constexpr std::size_t remembered = 1U << 16U;
  static constexpr std::size_t excess_buckets = 64;

  Counter stop;      ///< 1: all processes shall end themselves
  Counter death;     ///< number of the death since which the victim is dead; 0: it lives
  Counter reported;  ///< number of the last death that the survivor has reported

  Counter sent;                   ///< number of the newest message that was begun
  Counter received;               ///< newest one that was delivered
  Counter confirmed[remembered];  ///< by number: messages whose sending has returned `ok`

  Counter deliveries;
  Counter survivors_successes;  ///< calls of the survivor that returned `ok`
  Counter restarts_told;        ///< to the survivor
  Counter waited_in_vain;       ///< `timeout` or `peer_gone` while the victim lived

  Counter torn;         ///< checksum wrong
  Counter twice;        ///< delivered before, or after a later one
  Counter stale;        ///< of an incarnation that was no more when the call began
  Counter unannounced;  ///< of a new incarnation before `peer_restarted`
  Counter skipped;      ///< confirmed to the sender, and left out
  Counter unexpected;   ///< answers that no rule allows

  Counter most_excess_ns;             ///< of a call beyond its deadline, the victim being dead
  Counter excess_ns[excess_buckets];  ///< by number of binary digits

  /// Confirms a message that has been sent.
  void confirm(std::uint64_t number) { confirmed[number % remembered] = number; }

  /// Notes a message that is delivered; the first one that a receiver gets may leave out others.
  void deliver(std::uint64_t number, bool is_first) {
    const std::uint64_t before = received;
    if (number <= before) {
      ++twice;
      return;
    }
    for (std::uint64_t between = before + 1; !is_first && between < number; ++between) {
      if (confirmed[between % remembered] == between) {
        ++skipped;
      }
    }
    received = number;
    ++deliveries;
  }

  void note_excess(std::uint64_t ns) {
    std::size_t digits = 0;
    for (std::uint64_t rest = ns; rest != 0; rest >>= 1U) {
      ++digits;
    }
    ++excess_ns[digits < excess_buckets ? digits : excess_buckets - 1];
    most_excess_ns = std::max(most_excess_ns.load(), ns);  // one process writes
  }
};

}  // namespace latenz::icc::kill
