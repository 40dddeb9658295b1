// SPDX-License-Identifier: Apache-2.0
// Any byte but 0 and 1 is undefined as a bool, and the peer may store one.
// refused: no bool in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint8_t moving;
#else
  bool moving;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
