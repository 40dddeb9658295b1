// SPDX-License-Identifier: Apache-2.0
// An address means nothing to the peer.
// refused: no pointer in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t text_offset;
#else
  const char* text;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
