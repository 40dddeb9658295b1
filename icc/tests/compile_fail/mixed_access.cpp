// SPDX-License-Identifier: Apache-2.0
// Compilers may put private and public members in any order.
// refused: a wire type has standard layout
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

class Mixed {
 public:
  std::uint32_t id = 0;

 private:
  [[maybe_unused]] std::uint32_t secret_ = 0;
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t part;
#else
  Mixed part;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
