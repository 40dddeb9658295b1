// SPDX-License-Identifier: Apache-2.0
// The size is as expected, the names would be of other members.
// refused: every leaf of n bytes lies at a multiple of n
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  constexpr Payload() : x(0), y(0) {}
  float x;
  float y;
};
#ifdef CORRECTED
LATENZ_DESCRIBE(Payload, x, y);
#else
LATENZ_DESCRIBE(Payload, y, x);
#endif

int main() { latenz::icc::require_wire_type<Payload>(); }
