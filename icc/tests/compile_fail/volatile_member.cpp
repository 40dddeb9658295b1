// SPDX-License-Identifier: Apache-2.0
// The channel decides how shared memory is accessed.
// refused: no const or volatile in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t state;
#else
  volatile std::uint32_t state;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
