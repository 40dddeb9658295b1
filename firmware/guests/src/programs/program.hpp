// SPDX-License-Identifier: Apache-2.0
// Programs that a host has made up: a list of operations each, one program for each window of time.
// The host finds the table in the image by its magic, and changes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latenz::guests {

/// What `place` and `value` are is told with each kind in operations.cpp.
struct Operation {
  std::uint8_t kind;   ///< index of `operations`
  std::uint8_t times;  ///< that it is repeated
  std::uint16_t place;
  std::uint32_t value;
};

struct Program {
  std::array<Operation, 8> main;     ///< the first once, the others until the window ends
  std::array<Operation, 4> handler;  ///< for each interrupt, once
};

struct ProgramTable {
  static constexpr std::size_t most = 1024;

  std::array<char, 8> magic;   ///< "LATENZHP"
  std::uint64_t first_tick;    ///< of the counter: the first window begins
  std::uint64_t window_ticks;  ///< from one to the next
  std::uint64_t count;         ///< programs; behind them the guest is a good one
  std::array<Program, most> program;
};
static_assert(sizeof(Program) == 96 && sizeof(ProgramTable) == 32 + (96 * ProgramTable::most),
              "the host knows the layout");

/// The window that it is now, by the counter alone: a restart loses nothing.
struct Window {
  std::uint64_t number;
  std::uint64_t end_tick;
  const Program* program;  ///< none before the first and behind the last
};
[[nodiscard]] Window window_now();
[[nodiscard]] bool is_over(const Window& window);

/// Executes operations in their order, until the window ends.
void execute(const Operation* first, std::size_t count, const Window& window);

/// What an operation has made of how interrupts are taken, and back.
[[nodiscard]] bool ends_interrupts();
void begin_afresh();

}  // namespace latenz::guests
