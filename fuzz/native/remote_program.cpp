// SPDX-License-Identifier: Apache-2.0
// Programs for a real-time core.
#include "failure.hpp"
#include "remote_elf.hpp"
#include "target.hpp"

void latenz::fuzz::read_input(Input input) {
  constexpr std::uint64_t begin = 0x7000'0000;
  constexpr std::uint64_t end = 0x7100'0000;
  try {
    const auto program = probe::read_remote_program("input", std::as_bytes(input), begin, end);
    for (const probe::RemoteSegment& each : program.segments) {
      require(each.address >= begin && each.address <= end && each.size <= end - each.address,
              "a segment lies in the core's memory");
      require(each.data.size() <= each.size, "a segment holds no more than its size");
      for (const std::byte byte : each.data) static_cast<void>(byte);
    }
  } catch (const probe::Failure& failure) {
    require(std::string(failure.what()).find('\n') == std::string::npos, "a refusal is one line");
  }
}
