// SPDX-License-Identifier: Apache-2.0
// A partition that counts: how far it gets in its slots tells what others take from it.
#include "bottom_handlers.hpp"
#include "counting.hpp"

extern "C" [[noreturn]] void firmware_main() {
  latenz::guests::start_bottom_handlers();
  latenz::guests::count();
}
