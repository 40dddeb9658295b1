// SPDX-License-Identifier: Apache-2.0
// `long long` is not a fixed-width type where std::int64_t is `long`, and the other way round.
// refused: an integer of a wire type is spelled std::int8_t
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "latenz/icc/wire_type.hpp"

static_assert(std::is_same_v<std::int64_t, long>);

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::int64_t position;
#else
  long long position;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
