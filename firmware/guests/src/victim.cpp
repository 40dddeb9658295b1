// SPDX-License-Identifier: Apache-2.0
// A partition that counts: how far it gets in its slots tells what others take from it.
#include "bottom_handlers.hpp"
#include "guest.hpp"

namespace {

/// Three instructions a turn.
[[noreturn]] void count(volatile std::uint64_t& progress) {
  std::uint64_t turns = 0;
  while (true) {
    asm volatile(
        "1: add %0, %0, #1\n"
        " str %0, [%1]\n"
        " b 1b"
        : "+r"(turns)
        : "r"(&progress)
        : "memory");
  }
}

}  // namespace

extern "C" [[noreturn]] void firmware_main() {
  latenz::guests::start_bottom_handlers();
  count(latenz::guests::report().progress);
}
