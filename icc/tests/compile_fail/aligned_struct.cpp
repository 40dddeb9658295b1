// SPDX-License-Identifier: Apache-2.0
// Bytes of padding that no rule explains.
// refused: every leaf of n bytes lies at a multiple of n
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct alignas(64) Line {
  std::uint32_t word;
};
struct Plain {
  std::uint32_t word;
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Plain line;
#else
  Line line;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
