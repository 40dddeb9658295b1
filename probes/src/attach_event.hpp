// SPDX-License-Identifier: Apache-2.0
// What is told of a watched thread: by our BPF programs in the kernel, or out of a trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latenz::attach {

enum class EventKind : std::uint8_t {
  out,        ///< the thread leaves its CPU
  in,         ///< the thread gets a CPU
  waking,     ///< somebody or something wakes the thread
  replenish,  ///< a timer of a SCHED_DEADLINE thread expires
  foreign,    ///< other threads change on a CPU where a watched one is ready
  fault,      ///< page fault of the thread
  fork,       ///< the thread makes a thread or process
  reclaim,    ///< the thread looks for free memory itself
  gone,       ///< the thread ends
  frequency,  ///< a CPU's frequency changes
  mark,       ///< the thread is where a cycle begins or ends, as the user has named it
};

/// Bits of `Event::flags` at a waking.
constexpr std::uint8_t by_timer = 1;
constexpr std::uint8_t due_known = 2;  ///< `a` is when the timer was due, not when it was looked at
constexpr std::uint8_t by_interrupt = 4;
constexpr std::uint8_t by_softirq = 8;

constexpr std::int64_t no_call = -1;  ///< the thread is in no system call
constexpr std::int64_t unknown_call = -2;

constexpr unsigned target_bits = 10;
constexpr unsigned late_unit_bits = 10;
constexpr std::uint32_t late_unknown = (1U << (32U - target_bits)) - 1;  ///< or even later

/// `value` of a mark; `latenz/mark.h` has the same.
constexpr std::uint32_t begin_mark = 1;
constexpr std::uint32_t end_mark = 2;
/// First argument of a prctl that marks: no option of the kernel's, so that it does nothing.
constexpr int mark_option = 0x4C545A4D;

/// Bits of `value` at a fault, as x86 has them: a page that is there is written to.
constexpr std::uint32_t writes_to_present = 3;

/// 64 bytes, as the programs in the kernel write them.
///
///   kind       other            comm        value                a             b         c
///   out        next thread      its name    state | arg 1 << 16  stolen_ns     call      arg 0
///   in         previous thread  its name    its priority         stolen_ns     calls     own prio
///   waking     current thread   its name    target CPU | late    due or now    stolen    function
///   replenish  -                -           -                    due           stolen    function
///   foreign    previous thread  its name    its priority         next thread   stolen    -
///   fault      -                -           error code           address       ip        -
///   fork       -                -           child                -             -         -
///   reclaim    -                -           1 begins, 0 ends     -             -         -
///   frequency  -                -           kHz                  -             -         -
///   mark       -                -           1 begins, 2 ends     -             stolen    -
///
/// How late a timer was by its own clock stands at a waking above the 10 bits of the CPU, in units
/// of 1,024 ns: with the time of the event it tells how that clock goes, and so when it was set.
/// Priorities are the kernel's: 0 to 98 real time (99 - priority), 100 to 139 others, -1
/// SCHED_DEADLINE. `stolen_ns` counts the time of interrupts and softirqs of this CPU since the
/// start, `calls` the system calls of the thread; at `out`, `flags` is the lowest byte of these: a
/// thread that is asleep makes none, so they tell whether events are missing.
struct Event {
  std::int64_t t_ns = 0;  ///< CLOCK_MONOTONIC
  std::int32_t tid = 0;
  std::uint16_t cpu = 0;
  EventKind kind = EventKind::out;
  std::uint8_t flags = 0;
  std::int32_t other = 0;
  std::uint32_t value = 0;
  std::array<char, 16> comm{};
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;

  [[nodiscard]] std::string_view name() const {
    const std::string_view whole(comm.data(), comm.size());
    return whole.substr(0, whole.find('\0'));
  }
};
static_assert(sizeof(Event) == 64 && offsetof(Event, comm) == 24 && offsetof(Event, a) == 40);

}  // namespace latenz::attach
