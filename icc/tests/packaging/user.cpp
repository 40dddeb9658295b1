// SPDX-License-Identifier: Apache-2.0
// Both sides of a mailbox in one program.
#include <cstddef>
#include <cstdint>

#include "latenz/icc.hpp"

struct Command {
  float angle;
  std::uint32_t cycle;
};
using Commands = latenz::icc::Mailbox<Command>;

alignas(latenz::icc::line_bytes) std::byte memory[Commands::bytes];

int main() {
  auto writer = Commands::Writer::create(memory, sizeof memory, "commands");
  auto reader = Commands::Reader::attach(memory, sizeof memory);
  Command command{};
  const bool sent = writer && reader &&
                    writer->try_write({.angle = 0.5F, .cycle = 7}) == latenz::icc::Result::ok &&
                    reader->try_read(command) == latenz::icc::Result::ok;
  return sent && command.cycle == 7 ? 0 : 1;
}
