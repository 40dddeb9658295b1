// SPDX-License-Identifier: Apache-2.0
// What a base class brings cannot be seen.
// refused: no base class in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Stamped {};
struct Sample : Stamped {
  std::uint32_t value;
};
struct Plain {
  std::uint32_t value;
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Plain sample;
#else
  Sample sample;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
