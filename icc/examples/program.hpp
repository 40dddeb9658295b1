// SPDX-License-Identifier: Apache-2.0
// What the examples for Linux do when something is wrong: one line, and exit code 2.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace program {

inline void print(std::FILE* file, const std::string& text) {
  if (std::fputs(text.c_str(), file) == EOF || std::fflush(file) != 0) std::exit(2);
}

[[noreturn]] inline void give_up(const std::string& line) {
  print(stderr, line + "\n");
  std::exit(2);
}

/// The endpoint; without one the program ends and says why.
template <class Opened>
auto opened_or_give_up(Opened opened) {
  if (!opened) {
    std::array<char, 200> line{};
    opened.problem().describe(line.data(), line.size());
    give_up(line.data());
  }
  return *opened;
}

}  // namespace program
