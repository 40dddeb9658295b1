// SPDX-License-Identifier: Apache-2.0
// A 32-bit number at offset 1.
// refused: no bit-field or packed member in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct [[gnu::packed]] Frame {
  std::uint8_t kind;
  std::uint32_t length;
};
struct Plain {
  std::uint8_t kind;
  std::uint32_t length;
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Plain frame;
#else
  Frame frame;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
