// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

namespace latenz::guests {

// Volatile: the host changes it after the compiler has seen it.
extern "C" {
[[gnu::section(".parameters"),
  gnu::used]] constinit const volatile HostileParameters parameter_block = {
    .magic = {'L', 'A', 'T', 'E', 'N', 'Z', 'H', 'A'}, .count = 1'000'000, .seed = 1, .name = {}};
}

const HostileParameters& parameters() {
  return const_cast<const HostileParameters&>(parameter_block);
}

}  // namespace latenz::guests
