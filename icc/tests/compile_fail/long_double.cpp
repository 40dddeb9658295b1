// SPDX-License-Identifier: Apache-2.0
// 8, 12 or 16 bytes, as the compiler likes.
// refused: no long double in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  double angle;
#else
  long double angle;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
