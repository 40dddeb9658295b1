// SPDX-License-Identifier: Apache-2.0
// C has no array of no elements.
// refused first: a FixedVector holds 1 to 65535 elements
#include <cstddef>
#include <cstdint>

#include "latenz/icc/fixed.hpp"
#include "latenz/icc/wire_type.hpp"

struct Payload {
#ifdef CORRECTED
  latenz::icc::FixedVector<float, 1> angles;
#else
  latenz::icc::FixedVector<float, 0> angles;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
