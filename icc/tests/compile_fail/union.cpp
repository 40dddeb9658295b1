// SPDX-License-Identifier: Apache-2.0
// Which member is meant?
// refused: no union in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

union Either {
  float current;
  std::uint32_t ticks;
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  float value;
#else
  Either value;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
