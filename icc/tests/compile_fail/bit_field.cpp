// SPDX-License-Identifier: Apache-2.0
// Compilers share out the bits.
// refused: no bit-field or packed member in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t mode;
#else
  std::uint32_t mode : 3;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
