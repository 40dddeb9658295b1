// SPDX-License-Identifier: Apache-2.0
// A partition that rings the doorbell of its first channel once a millisecond, whatever comes of
// it. Progress: calls that the hypervisor took.
#include <cstdint>

#include "bottom_handlers.hpp"
#include "cpu.hpp"
#include "guest.hpp"

extern "C" [[noreturn]] void firmware_main() {
  using namespace latenz::guests;
  start_bottom_handlers();
  const std::uint64_t millisecond = information().counter_hz / 1000;
  for (std::uint64_t rung = 0;;) {
    const std::uint64_t next = latenz::firmware::VirtualTimer::count() + millisecond;
    if (call(Hypercall::notify, information().channel[0].number) >= 0) report().progress = ++rung;
    while (latenz::firmware::VirtualTimer::count() < next) {
    }
  }
}
