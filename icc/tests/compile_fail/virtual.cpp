// SPDX-License-Identifier: Apache-2.0
// Its object holds an address of this program.
// refused: no virtual function in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Shape {
  std::uint32_t id = 0;
  virtual std::uint32_t area() const;
};
struct Plain {
  std::uint32_t id = 0;
  std::uint32_t area() const;
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  Plain shape;
#else
  Shape shape;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
