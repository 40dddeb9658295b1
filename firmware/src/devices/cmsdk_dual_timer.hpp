// SPDX-License-Identifier: Apache-2.0
// First half of the CMSDK dual timer (SP804 compatible) as a source of events. It counts down,
// asks for an interrupt when it comes to zero, and reloads itself a tick later.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

/// `clock_hz`: of the timer; `interrupt_id`: at the interrupt controller
template <std::uintptr_t base, std::uint32_t clock_hz, std::uint32_t interrupt_id>
class CmsdkDualTimer {
 public:
  static constexpr const char* name = "dual";
  static constexpr std::uint32_t interrupt = interrupt_id;
  static constexpr bool any_gap = false;
  static constexpr std::uint64_t longest_gap = 0x1'0000'0000;

  static std::uint64_t hz() { return clock_hz; }

  [[gnu::always_inline]] static inline std::uint64_t now() { return Value::read(); }
  static std::uint64_t latency(std::uint64_t seen) {
    return seen == 0 ? 0 : std::uint64_t{Load::read()} + 1 - seen;
  }

  static void start(std::uint64_t gap) {
    Control::write(0);
    Clear::write(1);
    Load::write(static_cast<std::uint32_t>(gap - 1));
    Control::write(enable | periodic | interrupt_enable | wide);
  }

  /// Acknowledges this event; the next one follows by itself.
  static std::uint64_t schedule(std::uint64_t gap) {
    Clear::write(1);
    return gap;
  }

  static void stop() {
    Control::write(0);
    Clear::write(1);
  }

 private:
  using Load = Register<base + 0x00>;
  using Value = Register<base + 0x04>;
  using Control = Register<base + 0x08>;
  using Clear = Register<base + 0x0C>;
  static constexpr std::uint32_t wide = 1U << 1U;
  static constexpr std::uint32_t interrupt_enable = 1U << 5U;
  static constexpr std::uint32_t periodic = 1U << 6U;
  static constexpr std::uint32_t enable = 1U << 7U;
};

}  // namespace latenz::firmware
