// SPDX-License-Identifier: Apache-2.0
// Whether somebody on another core supervises the firmware, and what he wants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/control_block.hpp"
#include "register.hpp"

namespace latenz::firmware {

/// Nobody: boards without an operating system beside the firmware.
struct Unsupervised {
  static constexpr bool possible = false;
  static void begin() {}
  static void enter(ControlState /*state*/) {}
  static void beat() {}
  static void count_sample(std::size_t /*taken*/) {}
  static bool is_wanted(ControlCommand /*command*/) { return false; }
  static void obey() {}
};

/// By a control block at a fixed address.
template <std::uintptr_t base>
class Supervised {
 public:
  static constexpr bool possible = true;

  /// What lies there from before a power-up is not trusted; from before a restart it is.
  static void begin() {
    if (Magic::read() != ControlBlock::expected_magic) {
      Command::write(0);
      Heartbeat::write(0);
      Starts::write(0);
      Reserved::write(0);
    }
    Version::write(ControlBlock::current_version);
    Samples::write(0);
    Starts::write(Starts::read() + 1);
    Magic::write(ControlBlock::expected_magic);
  }

  static void enter(ControlState state) { State::write(static_cast<std::uint32_t>(state)); }
  static void beat() { Heartbeat::write(Heartbeat::read() + 1); }

  static void count_sample(std::size_t taken) {
    beat();
    Samples::write(static_cast<std::uint32_t>(taken));
  }

  static bool is_wanted(ControlCommand command) {
    return Command::read() == static_cast<std::uint32_t>(command);
  }

  static void obey() { Command::write(static_cast<std::uint32_t>(ControlCommand::none)); }

 private:
  using Magic = Register<base + offsetof(ControlBlock, magic)>;
  using Version = Register<base + offsetof(ControlBlock, version)>;
  using Command = Register<base + offsetof(ControlBlock, command)>;
  using State = Register<base + offsetof(ControlBlock, state)>;
  using Heartbeat = Register<base + offsetof(ControlBlock, heartbeat)>;
  using Starts = Register<base + offsetof(ControlBlock, starts)>;
  using Samples = Register<base + offsetof(ControlBlock, samples)>;
  using Reserved = Register<base + offsetof(ControlBlock, reserved)>;
};

}  // namespace latenz::firmware
