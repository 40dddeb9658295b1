// SPDX-License-Identifier: Apache-2.0
// Reads and checks a program for a real-time core: everything in the file may be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace latenz::probe {

/// A part of the program: its bytes, then zeros, at an address of the core.
struct RemoteSegment {
  std::uint64_t address = 0;
  std::uint64_t size = 0;           ///< in memory, with the zeros
  std::span<const std::byte> data;  ///< points into the file
};

struct RemoteProgram {
  std::uint32_t entry = 0;
  std::vector<RemoteSegment> segments;
  std::size_t resources = 0;  ///< entries of its resource table; 0 without one
};

/// Checks all of the file that loading relies on: a 32-bit Arm executable whose segments lie in
/// `begin` to `end` without overlap, and a well-formed resource table as OpenAMP has it, if any.
/// Throws `Failure` with what is wrong; `name` goes first.
RemoteProgram read_remote_program(const std::string& name, std::span<const std::byte> file,
                                  std::uint64_t begin, std::uint64_t end);

}  // namespace latenz::probe
