// SPDX-License-Identifier: Apache-2.0
// 257 fields would fill the table.
// refused: a wire type has at most 256 fields
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Joint {
  float angle;
  float torque[256];
};
struct Plain {
  float angle;
  float torque[255];
};

struct Payload {
#ifdef CORRECTED
  Plain joints[6];
#else
  Joint joints[6];
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
