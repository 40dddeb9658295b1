// SPDX-License-Identifier: Apache-2.0
// Bytes are copied, no constructor runs in the peer.
// refused: a wire type is trivially copyable
#include <cstddef>
#include <cstdint>

#include "latenz/icc/wire_type.hpp"

struct Counted {
  std::uint32_t id = 0;
  ~Counted() {}
};

struct Payload {
  std::uint32_t cycle;
#ifdef CORRECTED
  std::uint32_t part;
#else
  Counted part;
#endif
};

int main() { latenz::icc::require_wire_type<Payload>(); }
