// SPDX-License-Identifier: Apache-2.0
// Describing it does not help.
// refused first: attempt to take address of bit-field
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  constexpr Payload() : mode(0) {}
#ifdef CORRECTED
  std::uint32_t mode;
#else
  std::uint32_t mode : 31;
#endif
};
LATENZ_DESCRIBE(Payload, mode);

int main() { latenz::icc::require_wire_type<Payload>(); }
