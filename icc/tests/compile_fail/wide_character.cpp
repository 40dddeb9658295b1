// SPDX-License-Identifier: Apache-2.0
// wchar_t has 2 or 4 bytes.
// refused: no wide character in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t letter;
#else
  wchar_t letter;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
