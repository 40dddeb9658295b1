// SPDX-License-Identifier: Apache-2.0
// A partition that counts, and whose bottom handlers take a quarter of the time that they may: the
// rest is for what cores beside it take from them.
#include "bottom_handlers.hpp"
#include "counting.hpp"

extern "C" [[noreturn]] void firmware_main() {
  latenz::guests::start_bottom_handlers(4);
  latenz::guests::count();
}
