// SPDX-License-Identifier: Apache-2.0
// What becomes of a partition's faults, and whether it is alive: a partition's row of what ARINC
// 653 calls a health table. All in a bounded number of steps. Freestanding.
#pragma once

#include <array>
#include <cstdint>

#include "clock.hpp"
#include "configuration.hpp"

namespace latenz::hypervisor {

class Health {
 public:
  /// Times are ticks of the counter.
  void begin(const PartitionEntry& entry, const Clock& clock) {
    most_restarts_ = entry.restarts;
    window_ = clock.at_least(entry.restart_window_ns).ns();
    timeout_ = clock.at_least(entry.watchdog_ns).ns();
  }

  /// A fault came: what becomes of it instead of what the configuration has for its kind.
  [[nodiscard]] Reaction fault(Reaction wanted, std::uint64_t now) {
    ++faults_;
    if (wanted != Reaction::restart) return wanted;
    if (!permits_restart(static_cast<std::int64_t>(now))) return Reaction::stop;
    if (window_ != 0) {
      at_[next_] = static_cast<std::int64_t>(now);
      next_ = next_ + 1 == most_restarts_ ? 0 : next_ + 1;
    }
    restarts_ += 1;
    return Reaction::restart;
  }

  [[nodiscard]] std::uint32_t faults() const { return faults_; }
  /// Those of them that were the watchdog's.
  [[nodiscard]] std::uint32_t expiries() const { return expiries_; }

  // --- The watchdog ------------------------------------------------------------------------------

  [[nodiscard]] bool is_watched() const { return timeout_ != 0; }

  /// The guest has its time from then on: the run begins, or the guest anew.
  void watch_from(std::uint64_t now) { alive_ = static_cast<std::int64_t>(now); }

  /// At a start of its slot: whether its progress has been the same for the time of its watchdog.
  /// If so, it has its time again.
  [[nodiscard]] bool expires(std::uint64_t progress, std::uint64_t now) {
    const auto at = static_cast<std::int64_t>(now);
    const bool same = progress == progress_;
    if (same && at - alive_ < timeout_) return false;
    progress_ = progress;
    alive_ = at;
    expiries_ += same ? 1 : 0;
    return same;
  }

 private:
  [[nodiscard]] bool permits_restart(std::int64_t now) const {
    if (restarts_ < most_restarts_) return true;
    return window_ != 0 && most_restarts_ != 0 && now - at_[next_] >= window_;
  }

  std::uint32_t faults_ = 0;
  std::uint32_t expiries_ = 0;
  std::uint32_t restarts_ = 0;  ///< by faults
  std::uint32_t most_restarts_ = 0;
  std::uint32_t next_ = 0;      ///< of at_: the one longest ago
  std::int64_t window_ = 0;     ///< 0: of the whole run
  std::int64_t timeout_ = 0;    ///< 0: no watchdog
  std::int64_t alive_ = 0;      ///< when it was known to be alive last
  std::uint64_t progress_ = 0;  ///< of then
  std::array<std::int64_t, PartitionEntry::most_timed_restarts> at_{};  ///< last restarts by faults
};

}  // namespace latenz::hypervisor
