// SPDX-License-Identifier: Apache-2.0
// One byte for arm-none-eabi, four for others.
// refused: an enumeration of a wire type fixes its underlying type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

enum Open { idle, moving };
enum Fixed : std::uint8_t { off, on };

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Fixed mode;
#else
  Open mode;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
