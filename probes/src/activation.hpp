// SPDX-License-Identifier: Apache-2.0
// Activations of a periodic thread.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>

#include "clock.hpp"

namespace latenz::probe {

/// One activation: when it was due, how late it came, and how many it overslept.
struct Activation {
  std::int64_t due_ns;
  std::int64_t latency_ns;
  std::int64_t skipped;  ///< due times that passed since `due_ns`; they get no activation
  [[nodiscard]] std::int64_t running_ns() const { return due_ns + latency_ns; }
};

/// Sleeps from one due time to the next; after a late activation the next due time is the next one
/// in the future. Nothing but the sleep is a system call.
class Activations {
 public:
  Activations(int clock_id, std::int64_t first_due_ns, std::int64_t interval_ns)
      : clock_id_(clock_id), due_ns_(first_due_ns), interval_ns_(interval_ns) {}

  /// Sleeps until the next due time; nothing if a signal ended the sleep early.
  [[nodiscard]] std::optional<Activation> next() {
    const timespec due = to_timespec(due_ns_);
    if (clock_nanosleep(clock_id_, TIMER_ABSTIME, &due, nullptr) != 0) {
      return std::nullopt;
    }
    const std::int64_t latency_ns = read_clock_ns(clock_id_) - due_ns_;
    const Activation activation{
        .due_ns = due_ns_,
        .latency_ns = latency_ns,
        .skipped = latency_ns >= interval_ns_ ? latency_ns / interval_ns_ : 0};
    due_ns_ += (activation.skipped + 1) * interval_ns_;
    return activation;
  }

  [[nodiscard]] std::int64_t next_due_ns() const { return due_ns_; }

 private:
  int clock_id_;
  std::int64_t due_ns_;
  std::int64_t interval_ns_;
};

/// When a run with a duration is over: before the first activation that is due at the end or later.
/// After a late one a single one more belongs to it, so that what was skipped in between shows.
class Ending {
 public:
  [[nodiscard]] bool is_reached(const Activation& last, std::int64_t next_due_ns,
                                std::int64_t end_ns) {
    if (next_due_ns < end_ns) {
      return false;
    }
    const bool over = last.skipped == 0 || one_more_;
    one_more_ = true;
    return over;
  }

 private:
  bool one_more_ = false;
};

}  // namespace latenz::probe
