// SPDX-License-Identifier: Apache-2.0
// An exception that is no interrupt: says what it was, and ends this partition.
#include "guest.hpp"
#include "psci.hpp"
#include "text.hpp"

namespace latenz::guests {

/// `vector`: its place in the table, see the firmware's vectors.S
extern "C" [[noreturn]] void on_exception(std::uint64_t vector) {
  std::uint64_t esr = 0;
  std::uint64_t elr = 0;
  std::uint64_t far = 0;
  asm volatile("mrs %0, esr_el1\n mrs %1, elr_el1\n mrs %2, far_el1"
               : "=r"(esr), "=r"(elr), "=r"(far));
  firmware::Text<120> text;
  text.add("fault ").add(vector).add(": ESR ").add_hex(esr);
  text.add(" ELR ").add_hex(elr).add(" FAR ").add_hex(far).add("\n");
  say(text.view());
  while (true) call(firmware::Psci::system_off);
}

}  // namespace latenz::guests
