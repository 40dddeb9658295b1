// SPDX-License-Identifier: Apache-2.0
// What our guests need of the machine that the hypervisor shows them.
#pragma once

#include <cstdint>
#include <string_view>

#include "devices/pl011.hpp"
#include "gic.hpp"
#include "latenz/guest_machine.hpp"

namespace latenz::guests {

using hypervisor::Hypercall;
using hypervisor::InformationPage;
using hypervisor::ReportPage;

using Console = firmware::Pl011<GuestMachine::console>;

inline const InformationPage& information() {
  return *reinterpret_cast<const InformationPage*>(GuestMachine::information);
}

inline volatile ReportPage& report() {
  return *reinterpret_cast<volatile ReportPage*>(GuestMachine::report);
}

/// Calls the hypervisor: a function of Hypercall or of PSCI.
inline std::int64_t call(std::uint64_t function, std::uint64_t first = 0, std::uint64_t second = 0,
                         std::uint64_t third = 0) {
  register std::uint64_t x0 asm("x0") = function;
  register std::uint64_t x1 asm("x1") = first;
  register std::uint64_t x2 asm("x2") = second;
  register std::uint64_t x3 asm("x3") = third;
  asm volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)::"memory");
  return static_cast<std::int64_t>(x0);
}

inline void say(std::string_view text) {
  for (const char character : text) Console::put(character);
}

/// All further interrupts come from the sources that this partition has.
inline void begin() {
  Console::start();
  call(Hypercall::ready);
}

}  // namespace latenz::guests
