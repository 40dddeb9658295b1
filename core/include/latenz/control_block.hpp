// SPDX-License-Identifier: Apache-2.0
// Memory through which Linux supervises firmware on another core, as remoteproc's life cycle goes:
// load, start, stop, restart. Eight little-endian words; docs/firmware.md has the table.
// Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latenz {

/// Written by Linux; the firmware sets it back to `none` when it has obeyed.
enum class ControlCommand : std::uint32_t { none = 0, start = 1, stop = 2 };

/// Written by the firmware.
enum class ControlState : std::uint32_t {
  off = 0,      ///< nothing runs there yet
  ready = 1,    ///< waits for `start`
  running = 2,  ///< measures, then sends
  done = 3,     ///< all is sent; waits for `stop`
  stopped = 4,  ///< waits for `start`, which begins anew from the entry point
  fault = 5,    ///< sent a fault frame and does nothing any more
};

struct ControlBlock {
  static constexpr std::uintptr_t zynqmp_address = 0xFFFC'0000;  ///< first of the on-chip memory
  static constexpr std::uint32_t expected_magic = 0x4354'5A4C;   ///< "LZTC"
  static constexpr std::uint32_t current_version = 1;

  std::uint32_t magic;      ///< firmware, once the rest is valid
  std::uint32_t version;    ///< firmware
  std::uint32_t command;    ///< Linux: ControlCommand
  std::uint32_t state;      ///< firmware: ControlState
  std::uint32_t heartbeat;  ///< firmware: moves while it waits and with every sample
  std::uint32_t starts;     ///< firmware: times its entry point was reached
  std::uint32_t samples;    ///< firmware: taken in this run, with warm-up
  std::uint32_t reserved;   ///< 0
};

static_assert(sizeof(ControlBlock) == 32 && offsetof(ControlBlock, heartbeat) == 16,
              "the layout is documented");

}  // namespace latenz
