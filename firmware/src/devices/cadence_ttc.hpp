// SPDX-License-Identifier: Apache-2.0
// First counter of a Cadence Triple Timer Counter (Zynq UltraScale+) as a source of events.
//
// It counts up to the interval, starts again at zero and asks for an interrupt: what it shows in
// the handler is the latency. The handler restarts it: without that QEMU's model re-arms an event
// that never ends (its nanoseconds are rounded down while virtual time stands still), and it wants
// periods of a multiple of 125 us. A restart makes the next event late by the handler's own time,
// which `schedule` tells.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

/// `clock_hz`: of the bus the timer counts; `interrupt_id`: at the interrupt controller
template <std::uintptr_t base, std::uint32_t clock_hz, std::uint32_t interrupt_id>
class CadenceTtc {
 public:
  static constexpr const char* name = "ttc";
  static constexpr std::uint32_t interrupt = interrupt_id;
  static constexpr bool any_gap = false;
  static constexpr std::uint64_t longest_gap = 0x1'0000;

  static std::uint64_t hz() { return clock_hz; }

  [[gnu::always_inline]] static inline std::uint64_t now() { return Value::read(); }
  static std::uint64_t latency(std::uint64_t seen) { return seen; }

  /// The first event comes after a gap.
  static void start(std::uint64_t gap) {
    Control::write(disable);
    ClockControl::write(0);
    Interval::write(static_cast<std::uint32_t>(gap - 1));
    static_cast<void>(InterruptFlags::read());
    InterruptEnable::write(interval_bit);
    Control::write(interval_mode | restart);
  }

  /// Acknowledges this event; returns how long after it the next one comes.
  static std::uint64_t schedule(std::uint64_t gap) {
    static_cast<void>(InterruptFlags::read());
    const std::uint64_t passed = Value::read();
    Control::write(interval_mode | restart);
    return passed + gap;
  }

  /// Whether an event has come; it is acknowledged by that.
  [[gnu::always_inline]] static inline bool pending() {
    return (InterruptFlags::read() & interval_bit) != 0;
  }

  static void stop() {
    InterruptEnable::write(0);
    Control::write(disable);
    static_cast<void>(InterruptFlags::read());
  }

 private:
  using ClockControl = Register<base + 0x00>;
  using Control = Register<base + 0x0C>;
  using Value = Register<base + 0x18>;
  using Interval = Register<base + 0x24>;
  using InterruptFlags = Register<base + 0x54>;  // cleared by reading
  using InterruptEnable = Register<base + 0x60>;
  static constexpr std::uint32_t interval_bit = 1U << 0U;
  static constexpr std::uint32_t disable = 1U << 0U;
  static constexpr std::uint32_t interval_mode = 0x22;  // no waveform output, interval
  static constexpr std::uint32_t restart = 1U << 4U;
};

}  // namespace latenz::firmware
