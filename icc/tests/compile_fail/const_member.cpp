// SPDX-License-Identifier: Apache-2.0
// What is read is copied over it.
// refused: no const or volatile in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t version;
#else
  const std::uint32_t version;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
