// SPDX-License-Identifier: Apache-2.0
// First counter of a Cadence Triple Timer Counter (Zynq UltraScale+) as a source of events.
//
// It counts up to the interval, starts again at zero and asks for an interrupt: what it shows in
// the handler is the latency. The handler restarts it: without that QEMU's model re-arms an event
// that never ends (its nanoseconds are rounded down while virtual time stands still), and it wants
// periods of a multiple of 125 us. A restart makes the next event late by the handler's own time,
// which `schedule` tells.
#pragma once

#include "cpu.hpp"
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

  static void stop() {
    InterruptEnable::write(0);
    Control::write(disable);
    static_cast<void>(InterruptFlags::read());
  }

  /// The same counter without its interrupt: an event is when it passes the gap. Its interrupt
  /// register cannot be polled under QEMU, whose model loses time with every access and then
  /// re-arms its own event for ever; so the counter stays away from the end of its range.
  class Polled {
   public:
    static void start(std::uint64_t gap) {
      Control::write(disable);
      ClockControl::write(0);
      InterruptEnable::write(0);
      gap_ = gap;
      Control::write(overflow_mode | restart);
      Cpu::pause(calibrated_turns);
      calibrated_ticks_ = static_cast<std::uint32_t>(Value::read()) + 1;
      Control::write(overflow_mode | restart);
    }

    /// Waits for the event; returns how long ago it was. It looks again after an eighth of what is
    /// left: every access of a device costs an emulator much, but a pause lasts longer while other
    /// emulated cores are busy, and must not last beyond the event.
    static std::uint64_t wait() {
      std::uint64_t seen = Value::read();
      while (seen < gap_) {
        const std::uint32_t pause = turns(static_cast<std::uint32_t>(gap_ - seen));
        if (pause > 0) Cpu::pause(pause);
        seen = Value::read();
      }
      return seen - gap_;
    }

    /// Returns how long after this event the next one comes.
    static std::uint64_t schedule(std::uint64_t gap) {
      const std::uint64_t passed = Value::read() - gap_;
      Control::write(overflow_mode | restart);
      gap_ = gap;
      return passed + gap;
    }

   private:
    static constexpr std::uint32_t calibrated_turns = 1024;

    /// Turns of a pause that last an eighth of some ticks where no other core is busy.
    static std::uint32_t turns(std::uint32_t ticks) {
      return ticks * (calibrated_turns / 8) / calibrated_ticks_;
    }

    static inline std::uint64_t gap_ = 0;
    static inline std::uint32_t calibrated_ticks_ = 1;
  };

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
  static constexpr std::uint32_t overflow_mode = 0x20;
  static constexpr std::uint32_t restart = 1U << 4U;
};

}  // namespace latenz::firmware
