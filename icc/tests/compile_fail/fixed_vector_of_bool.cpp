// SPDX-License-Identifier: Apache-2.0
// A container's elements are seen like all members.
// refused: no bool in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/fixed.hpp"
#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  latenz::icc::FixedVector<std::uint8_t, 6> moving;
#else
  latenz::icc::FixedVector<bool, 6> moving;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
