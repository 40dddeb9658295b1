// SPDX-License-Identifier: Apache-2.0
// Both processors read the same counter.
#include "clocks.hpp"

#include "output.hpp"
#include "side.hpp"

namespace latenz::pair {

const char* Clocks::name() { return "system counter"; }
std::uint32_t Clocks::hz() { return SystemCounter::hz(); }
void Clocks::start() {
  if (hz() == 0) firmware::fail("the boot loader has not told how fast the system counter is");
}
std::uint32_t Clocks::now() { return SystemCounter::now(); }
std::uint32_t Clocks::own_time(std::uint32_t others) { return others; }
std::uint32_t Clocks::doubt() { return 1; }

}  // namespace latenz::pair
