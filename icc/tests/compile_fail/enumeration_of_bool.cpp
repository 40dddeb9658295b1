// SPDX-License-Identifier: Apache-2.0
// Its bytes are those of a bool.
// refused: no bool in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

enum class Switch : bool { off, on };
enum class Mode : std::uint8_t { off, on };

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Mode mode;
#else
  Switch mode;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
