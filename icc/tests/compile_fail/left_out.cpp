// SPDX-License-Identifier: Apache-2.0
// A member that nobody named.
// refused: no member left out of LATENZ_DESCRIBE
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Pose {
  constexpr Pose() : x(0), y(0) {}
  float x;
  float y;
};
#ifdef CORRECTED
LATENZ_DESCRIBE(Pose, x, y);
#else
LATENZ_DESCRIBE(Pose, x);
#endif

struct Payload {
  std::uint32_t cycle;
  Pose pose;
};

int main() { latenz::icc::require_wire_type<Payload>(); }
