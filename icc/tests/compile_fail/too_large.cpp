// SPDX-License-Identifier: Apache-2.0
// A channel copies whole payloads.
// refused: a wire type has at most 64 KiB
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint8_t image[65532];
#else
  std::uint8_t image[65536];
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
