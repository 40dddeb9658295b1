// SPDX-License-Identifier: Apache-2.0
// The trace: what the hypervisor did when, in a ring in memory that is read when all is over.
// Writing a record costs the same whatever is in it. Times are ticks of the system counter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace latenz::hypervisor {

enum class TraceKind : std::uint8_t {
  nothing = 0,
  slot_switch = 1,  ///< value: ticks from the slot's start to the hypervisor's first instruction;
                    ///< detail: slot
  top_handler = 2,  ///< value: ticks from the arrival to the hypervisor's first instruction;
                    ///< detail: see TopDetail
  job_start = 3,    ///< of an interposed job of `source`; value: ticks that scheduling took
  job_end = 4,      ///< value: ticks that the job executed; detail: 1 if its budget was used up
  bottom_end = 5,   ///< the bottom handler of `source` has ended at `start`; detail: see TopDetail
  catch_up = 6,     ///< noting an interrupt of `source` that was signalled the short way
  limit = 7,        ///< `source` came before its limit permits it, and was masked (R7)
  progress = 8,     ///< of the partition when its slot ended: low word in value, high in detail;
                 ///< `source`: bits 0 and 1 Partition::State, above them its faults, at most 16383
};

/// Bits of `detail`.
struct TopDetail {
  static constexpr std::uint32_t handling = 0x3;  ///< 0 direct, 1 interposed, 2 delayed
  static constexpr std::uint32_t accepted = 1U << 2U;
  static constexpr std::uint32_t asked = 1U << 3U;    ///< the monitor was
  static constexpr std::uint32_t monitor_shift = 16;  ///< ticks that the monitor took
};

struct TraceRecord {
  std::uint64_t start;     ///< tick of the section's first instruction
  std::uint32_t duration;  ///< ticks; without entering and leaving the hypervisor
  std::uint32_t value;
  TraceKind kind;
  std::uint8_t partition;
  std::uint16_t source;
  std::uint32_t detail;
};
static_assert(sizeof(TraceRecord) == 24);

/// Keeps the last records. Off when it has no room.
class Trace {
 public:
  void place(std::span<TraceRecord> room) {
    room_ = room;
    is_on_ = !room.empty();
  }

  /// What was written is kept, nothing more is written.
  void end() { is_on_ = false; }

  void write(const TraceRecord& record) {
    if (!is_on_) return;
    room_[next_] = record;
    next_ = next_ + 1 == room_.size() ? 0 : next_ + 1;
    ++written_;
  }

  /// How many were ever written.
  [[nodiscard]] std::uint64_t written() const { return written_; }

  /// How many of them are kept.
  [[nodiscard]] std::uint64_t kept() const {
    return written_ < room_.size() ? written_ : room_.size();
  }

  /// Calls with each kept record, oldest first.
  template <typename Visit>
  void each(Visit visit) const {
    const bool wrapped = written_ > room_.size();
    std::size_t at = wrapped ? next_ : 0;
    for (std::uint64_t i = 0; i < kept(); ++i) {
      visit(room_[at]);
      at = at + 1 == room_.size() ? 0 : at + 1;
    }
  }

 private:
  std::span<TraceRecord> room_;
  std::size_t next_ = 0;
  std::uint64_t written_ = 0;
  bool is_on_ = false;
};

}  // namespace latenz::hypervisor
