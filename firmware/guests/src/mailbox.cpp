// SPDX-License-Identifier: Apache-2.0
// Partitions that share memory at 0x7000'0000: the first of the system counts there, all others
// take what they find there as their progress. One without the memory faults.
#include <cstdint>

#include "bottom_handlers.hpp"
#include "guest.hpp"

extern "C" [[noreturn]] void firmware_main() {
  using latenz::guests::information;
  using latenz::guests::report;
  constexpr std::uintptr_t address = 0x7000'0000;
  auto& box = *reinterpret_cast<volatile std::uint64_t*>(address);
  const bool writes = information().partition == 0;
  latenz::guests::start_bottom_handlers();
  while (true) {
    const std::uint64_t found = box;
    if (writes) box = found + 1;
    report().progress = found;
  }
}
