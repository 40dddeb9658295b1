// SPDX-License-Identifier: Apache-2.0
// The drive of control_loop.cpp for a real-time core without operating system. The board's start-up
// code calls `run_drive` with the memory that both processors know; map it as the platform wants
// (ZynqMp: Normal, not cacheable).
#include "control_parts.hpp"

/// Serves for ever: a servo that leaves, falls silent or restarts is waited for again.
[[noreturn]] void run_drive(void* shared_memory) noexcept {
  auto* place = static_cast<std::byte*>(shared_memory) + control::drive_offset;
  for (;;) {
    auto server =
        control::Drive::Server::attach_until(place, control::Drive::bytes, latenz::icc::Never{});
    if (server) {
      control::drive(*server);
    }
  }
}
