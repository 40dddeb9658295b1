// SPDX-License-Identifier: Apache-2.0
#include "guest.hpp"
#include "output.hpp"
#include "psci.hpp"

namespace latenz::firmware {

void fail(std::string_view reason) {
  guests::say(reason);
  guests::say("\n");
  while (true) guests::call(Psci::system_off);
}

}  // namespace latenz::firmware
