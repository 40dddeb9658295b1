// SPDX-License-Identifier: Apache-2.0
// The generic timer of Arm cores as a source of events at absolute times.
#pragma once

#include "cpu.hpp"

namespace latenz::firmware {

/// `interrupt_id`: of the virtual timer at the interrupt controller
template <std::uint32_t interrupt_id = 27>
class GenericTimer {
 public:
  static constexpr const char* name = "generic";
  static constexpr std::uint32_t interrupt = interrupt_id;
  static constexpr bool any_gap = true;
  static constexpr std::uint64_t longest_gap = std::uint64_t{1} << 62U;

  static std::uint64_t hz() { return VirtualTimer::hz(); }

  [[gnu::always_inline]] static inline std::uint64_t now() { return VirtualTimer::count(); }
  static std::uint64_t latency(std::uint64_t seen) { return seen - event_; }

  /// The first event comes after a gap.
  static void start(std::uint64_t gap) { start_at(VirtualTimer::count() + gap); }

  /// The first event comes at a time of the virtual counter.
  static void start_at(std::uint64_t event) { arm(event); }

  /// The next event comes a gap after this one, however late this one was seen.
  static std::uint64_t schedule(std::uint64_t gap) {
    arm(event_ + gap);
    return gap;
  }

  static void stop() { VirtualTimer::control(0); }

 private:
  static constexpr std::uint64_t enable = 1;

  /// The control register is written every time: Xen masks the timer when it fires.
  static void arm(std::uint64_t event) {
    event_ = event;
    VirtualTimer::compare(event);
    VirtualTimer::control(enable);
  }

  static inline std::uint64_t event_ = 0;
};

}  // namespace latenz::firmware
