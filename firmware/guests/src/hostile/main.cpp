// SPDX-License-Identifier: Apache-2.0
// A guest that does what it must not. What it says on its console tells how far it got.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "attack.hpp"
#include "cpu.hpp"
#include "guest.hpp"
#include "interrupts.hpp"
#include "latenz/text.hpp"
#include "parameters.hpp"

extern "C" {
extern std::uint64_t exceptions_seen;  // vectors.S
extern const std::byte hostile_vectors;
}

namespace latenz::guests {
namespace {

/// Survives a restart, which clears the memory: behind what the report page is for.
struct Kept {
  std::uint32_t step;
  std::uint32_t lives;
};
volatile Kept& kept() {
  return *reinterpret_cast<volatile Kept*>(GuestMachine::report + sizeof(ReportPage));
}

alignas(16) std::array<std::byte, 0x4000> attack_stack;

std::array<std::span<const Attack>, 8> all_attacks() {
  return {memory_attacks(),          gic_attacks(),       call_attacks(),   timer_attacks(),
          system_register_attacks(), processor_attacks(), random_attacks(), job_attacks()};
}

const Attack* chosen() {
  const auto& wanted = parameters().name;
  const auto length = std::ranges::find(wanted, '\0') - wanted.begin();
  const std::string_view name(wanted.data(), static_cast<std::size_t>(length));
  for (const auto attacks : all_attacks()) {
    for (const Attack& attack : attacks) {
      if (attack.name == name) return &attack;
    }
  }
  return nullptr;
}

void tell(std::string_view what, std::string_view name) {
  Text<100> text;
  text.add(what).add(name).add(" step ").add(kept().step).add(" lives ").add(kept().lives);
  text.add(" exceptions ").add(exceptions_seen).add("\n");
  say(text.view());
}

void attack(const Attack& attack) {
  const std::uint32_t steps = attack.steps == Attack::as_many_as_wanted
                                  ? static_cast<std::uint32_t>(parameters().count)
                                  : attack.steps;
  while (kept().step < steps) {
    const std::uint32_t step = kept().step;
    kept().step = step + 1;  // before: it may be the last of this life
    attack.run(step);
  }
}

/// As a good guest, whatever the attack has left.
[[noreturn]] void idle() {
  firmware::Cpu::enable_interrupts();
  while (true) firmware::Cpu::wait_for_interrupt();
}

extern "C" [[noreturn]] void hostile_main() {
  kept().lives = kept().lives + 1;
  begin();
  start_interrupts();
  firmware::Cpu::enable_interrupts();
  const Attack* const wanted = chosen();
  if (wanted == nullptr) {
    say("no such attack\n");
    idle();
  }
  if (kept().lives == 1) tell("begins: ", wanted->name);
  attack(*wanted);
  tell("done: ", wanted->name);
  idle();
}

}  // namespace

}  // namespace latenz::guests

/// Exceptions get the stack that start.S gave us; attacks, which may spoil theirs, another one.
extern "C" [[noreturn]] void firmware_main() {
  asm volatile(
      "msr vbar_el1, %0\n"
      "isb\n"
      "msr spsel, #0\n"
      "mov sp, %1\n"
      "b hostile_main" ::"r"(&hostile_vectors),
      "r"(latenz::guests::attack_stack.data() + latenz::guests::attack_stack.size()));
  __builtin_unreachable();
}
