// SPDX-License-Identifier: Apache-2.0
// An exception that is no interrupt: says what it was and ends.
#include <cstdint>
#include <string_view>

#include "latenz/text.hpp"
#include "output.hpp"

namespace latenz::firmware {
namespace {

/// By place in the vector table.
constexpr std::string_view kinds[] = {
    "reset",
    "undefined instruction",
    "unexpected exception",
    "instruction abort",
    "data abort",
    "unexpected exception",
    "interrupt",
    "fast interrupt",
};

}  // namespace

/// `vector`: its place in the table; `address`: of the instruction
extern "C" [[noreturn]] void on_exception(std::uint32_t vector, std::uint32_t address) {
  std::uint32_t data_status = 0;
  std::uint32_t data_address = 0;
  std::uint32_t instruction_status = 0;
  asm volatile(
      "mrc p15, 0, %0, c5, c0, 0\n"
      "mrc p15, 0, %1, c6, c0, 0\n"
      "mrc p15, 0, %2, c5, c0, 1"
      : "=r"(data_status), "=r"(data_address), "=r"(instruction_status));
  Text<160> text;
  text.add(kinds[vector % 8]).add(": at ").add_hex(address);
  text.add(" DFSR ").add_hex(data_status).add(" DFAR ").add_hex(data_address);
  text.add(" IFSR ").add_hex(instruction_status);
  fail(text.view());
}

}  // namespace latenz::firmware
