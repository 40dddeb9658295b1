// SPDX-License-Identifier: Apache-2.0
// A CPU: what it executes, and for whom.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aarch64/board_gic.hpp"
#include "aarch64/vcpu.hpp"

namespace latenz::hypervisor {

class Tdma;

struct Processor {
  static constexpr std::size_t most = 8;

  std::uint64_t stack_end = 0;  ///< vectors.S takes it from here
  std::uint32_t index = 0;
  Tdma* tdma = nullptr;  ///< shares its time by slots; null: `running` never changes but by its end
  Vcpu* running = nullptr;
  CpuInterface interface;
  Vcpu idle;                          ///< executed where no guest is to
  std::uint64_t trap_ticks = 0;       ///< entering and leaving
  std::uint64_t longest_service = 0;  ///< ticks of the longest visit that was no other section's
  std::uint64_t spurious = 0;         ///< entries by an interrupt that was gone by then
  std::uint64_t idle_errors = 0;      ///< asynchronous errors of no guest

  /// Registers of EL2 that confine guests, and the interrupts of this CPU.
  void start(std::uint32_t cpu);
};
static_assert(offsetof(Processor, stack_end) == 0, "vectors.S knows where it is");

/// From one CPU's stack to the next, the lowest page of which is not mapped: image.ld, start.S.
inline constexpr std::uint64_t stack_distance = 0x4000;

extern Processor processors[Processor::most];

/// How far behind the loader's begin something in its page is (loader.S).
std::uint64_t loader_offset(const std::uint8_t* what);

/// Builds what every CPU uses when it has nothing to do; once.
[[nodiscard]] bool build_idle();

}  // namespace latenz::hypervisor
