// SPDX-License-Identifier: Apache-2.0
// A reference is an address.
// refused: none of them a reference
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t target;
#else
  std::uint32_t& target;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
