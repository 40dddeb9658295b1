// SPDX-License-Identifier: Apache-2.0
// Compilers have types of their own.
// refused: a wire type consists of fixed-width integers
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::int64_t time;
#else
  __int128 time;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
