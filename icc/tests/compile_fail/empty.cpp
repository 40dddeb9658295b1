// SPDX-License-Identifier: Apache-2.0
// A byte of nothing.
// refused: no empty struct in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Nothing {};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::byte nothing;
#else
  Nothing nothing;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
