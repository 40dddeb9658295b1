// SPDX-License-Identifier: Apache-2.0
// A guest that executes programs made up by a host: what a search for harm to others consists of.
// Its progress is the number of the program that ran last, from 1 on.
#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu.hpp"
#include "guest.hpp"
#include "program.hpp"

extern "C" const std::byte hostile_vectors;  // hostile/vectors.S

namespace latenz::guests {
namespace {

// Volatile: the host changes it after the compiler has seen it.
extern "C" {
[[gnu::section(".parameters"), gnu::used]] constinit const volatile ProgramTable program_table = {
    .magic = {'L', 'A', 'T', 'E', 'N', 'Z', 'H', 'P'},
    .first_tick = 0,
    .window_ticks = 1,
    .count = 0,
    .program = {}};
}

const ProgramTable& table() { return const_cast<const ProgramTable&>(program_table); }

alignas(16) std::array<std::byte, 0x4000> program_stack;

volatile std::uint64_t main_window = 0;  ///< number of the one whose operations are executed

/// Operations may cause exceptions, which overwrite where this one came from.
void handle_interrupt() {
  std::uint64_t from = 0;
  std::uint64_t state = 0;
  asm volatile("mrs %0, elr_el1\n mrs %1, spsr_el1" : "=r"(from), "=r"(state));
  const auto acknowledged = Interrupts::acknowledge();
  const Window window = window_now();
  if (window.program != nullptr && window.number == main_window) {
    execute(window.program->handler.data(), window.program->handler.size(), window);
  } else {
    firmware::VirtualTimer::control(0);  // nothing keeps the next program from its turn
  }
  if (ends_interrupts()) Interrupts::end(acknowledged);
  asm volatile("msr elr_el1, %0\n msr spsr_el1, %1" ::"r"(from), "r"(state));
}

void be_good() {
  begin_afresh();
  firmware::Cpu::enable_interrupts();
  while (window_now().program == nullptr) firmware::Cpu::wait_for_interrupt();
}

extern "C" [[noreturn]] void programs_main() {
  begin();
  while (true) {
    const Window window = window_now();
    if (window.program == nullptr) {
      be_good();
      continue;
    }
    main_window = window.number;
    report().progress = window.number + 1;
    execute(window.program->main.data(), 1, window);
    while (!is_over(window)) {
      execute(window.program->main.data() + 1, window.program->main.size() - 1, window);
    }
  }
}

}  // namespace

extern "C" {
void (*interrupt_handler)() = handle_interrupt;  // for the firmware's vectors.S
}

Window window_now() {
  const std::uint64_t now = firmware::VirtualTimer::count();
  const std::uint64_t first = table().first_tick;
  const std::uint64_t length = table().window_ticks;
  if (now < first) return {0, first, nullptr};
  const std::uint64_t number = (now - first) / length;
  const std::uint64_t end = first + ((number + 1) * length);
  return {number, end, number < table().count ? &table().program[number] : nullptr};
}

bool is_over(const Window& window) { return firmware::VirtualTimer::count() >= window.end_tick; }

}  // namespace latenz::guests

/// Exceptions get the stack that start.S gave us; programs, which may spoil theirs, another one.
extern "C" [[noreturn]] void firmware_main() {
  asm volatile(
      "msr vbar_el1, %0\n"
      "isb\n"
      "msr spsel, #0\n"
      "mov sp, %1\n"
      "b programs_main" ::"r"(&hostile_vectors),
      "r"(latenz::guests::program_stack.data() + latenz::guests::program_stack.size()));
  __builtin_unreachable();
}
