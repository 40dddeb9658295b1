// SPDX-License-Identifier: Apache-2.0
// An exception that is no interrupt: says what it was and ends.
#include <cstdint>
#include <string_view>

#include "latenz/text.hpp"
#include "output.hpp"

namespace latenz::firmware {
namespace {

/// Name of an exception class (Arm Architecture Reference Manual, ESR_EL1.EC).
std::string_view name_of(std::uint64_t exception_class) {
  switch (exception_class) {
    case 0x00:
      return "undefined instruction";
    case 0x0E:
      return "illegal execution state";
    case 0x21:
      return "instruction abort";
    case 0x22:
      return "misaligned program counter";
    case 0x25:
      return "data abort";
    case 0x26:
      return "misaligned stack pointer";
    default:
      return "unexpected exception";
  }
}

std::string_view kind_of(std::uint64_t vector, std::uint64_t syndrome) {
  switch (vector % 4) {
    case 0:
      return name_of(syndrome >> 26U);
    case 1:
      return "interrupt at a wrong level";
    case 2:
      return "fast interrupt";
    default:
      return "system error";
  }
}

}  // namespace

/// `vector`: its place in the table, see vectors.S
extern "C" [[noreturn]] void on_exception(std::uint64_t vector) {
  std::uint64_t esr = 0;
  std::uint64_t elr = 0;
  std::uint64_t far = 0;
  asm volatile("mrs %0, esr_el1\n mrs %1, elr_el1\n mrs %2, far_el1"
               : "=r"(esr), "=r"(elr), "=r"(far));
  Text<160> text;
  text.add(kind_of(vector, esr)).add(": ESR ").add_hex(esr);
  text.add(" ELR ").add_hex(elr).add(" FAR ").add_hex(far);
  fail(text.view());
}

}  // namespace latenz::firmware
