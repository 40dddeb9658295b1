// SPDX-License-Identifier: Apache-2.0
// The size is as expected, the offset of `second` is not.
// refused: every leaf of n bytes lies at a multiple of n
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Shifted {
  std::uint32_t word;
  std::uint8_t first;
  alignas(2) std::uint8_t second;
};
struct Plain {
  std::uint32_t word;
  std::uint8_t first;
  std::uint8_t second;
};
static_assert(sizeof(Shifted) == sizeof(Plain));

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Plain pair;
#else
  Shifted pair;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
