// SPDX-License-Identifier: Apache-2.0
// Hands the inputs that libFuzzer makes to a target.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  latenz::fuzz::read_input({data, size});
  return 0;
}
