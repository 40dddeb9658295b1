// SPDX-License-Identifier: Apache-2.0
// A type with constructors keeps its members to itself.
// refused: so name all of them by LATENZ_DESCRIBE
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Angle {
  Angle() = default;
  explicit constexpr Angle(float radians) : radians_value(radians) {}
  float radians_value;
};
#ifdef CORRECTED
LATENZ_DESCRIBE(Angle, radians_value);
#endif

struct Payload {
  std::uint32_t cycle;
  Angle angle;
};

int main() { latenz::icc::require_wire_type<Payload>(); }
