// SPDX-License-Identifier: Apache-2.0
// A channel says it as well as require_wire_type.
// refused: no pointer in a wire type
#include <cstddef>
#include <cstdint>

#include "latenz/icc.hpp"

struct Payload {
#ifdef CORRECTED
  std::uint32_t next;
#else
  Payload* next;
#endif
};

int main() {
  alignas(latenz::icc::line_bytes) static std::byte memory[1024];
  return latenz::icc::Mailbox<Payload>::Writer::create(memory, sizeof memory, "list") ? 0 : 1;
}
