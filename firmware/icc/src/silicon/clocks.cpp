// SPDX-License-Identifier: Apache-2.0
// Both processors read the same counter.
#include "clocks.hpp"

#include "side.hpp"

namespace latenz::pair {

const char* Clocks::name() { return "system counter"; }
std::uint32_t Clocks::hz() { return 100'000'000; }  // unless the boot loader has chosen otherwise
void Clocks::start() {}
std::uint32_t Clocks::now() { return SystemCounter::now(); }
std::uint32_t Clocks::own_time(std::uint32_t others) { return others; }
std::uint32_t Clocks::doubt() { return 1; }

}  // namespace latenz::pair
