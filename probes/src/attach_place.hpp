// SPDX-License-Identifier: Apache-2.0
// Where in a program a cycle begins or ends: a function or a static probe (USDT), as users name it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::attach {

/// As written: "PROGRAM:FUNCTION", "PROGRAM:FUNCTION%return" or "PROGRAM:PROVIDER:PROBE". PROGRAM
/// is the name or path of the program or of a library that it has mapped.
struct PlaceName {
  std::string text;
  std::string program;
  std::string function;  ///< empty: a static probe
  std::string provider;
  std::string probe;
  bool at_return = false;
};

/// Throws `probe::Failure`; `option` goes first.
[[nodiscard]] PlaceName parse_place(std::string_view option, std::string_view text);

/// A place as the kernel takes it.
struct Place {
  std::string file;
  std::uint64_t offset = 0;     ///< in the file
  std::uint64_t semaphore = 0;  ///< offset of what tells the program that somebody listens; 0: none
  bool at_return = false;
};

/// Where all of it is that has this name: a static probe may be in several places. None: nowhere.
/// `file`: the content of an ELF file, of which everything may be wrong. Throws `probe::Failure` if
/// several functions have that name.
[[nodiscard]] std::vector<Place> find_in_elf(const PlaceName& name,
                                             std::span<const std::byte> file);

/// Where it is in a running process; none: it has no such program or library mapped. Throws
/// `probe::Failure` if it has, but the place is not in it.
[[nodiscard]] std::vector<Place> find_place(const PlaceName& name, std::int32_t pid);

}  // namespace latenz::attach
