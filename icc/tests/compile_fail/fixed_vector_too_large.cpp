// SPDX-License-Identifier: Apache-2.0
// The count takes four bytes beside the elements.
// refused: a wire type has at most 64 KiB
#include <cstddef>
#include <cstdint>

#include "latenz/icc/fixed.hpp"
#include "latenz/icc/wire_type.hpp"

struct Payload {
#ifdef CORRECTED
  latenz::icc::FixedVector<std::uint64_t, 8191> samples;
#else
  latenz::icc::FixedVector<std::uint64_t, 8192> samples;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
