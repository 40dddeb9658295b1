// SPDX-License-Identifier: Apache-2.0
// The outermost layer of each program: what stops it becomes one line and an exit code.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <string>

#include "failure.hpp"

namespace latenz::probe {

inline void print(std::FILE* stream, const std::string& text) {
  // Nobody is left to be told if the stream is closed.
  static_cast<void>(std::fputs(text.c_str(), stream));
  static_cast<void>(std::fflush(stream));
}

/// Calls `body` with the arguments after the program's name.
template <typename Body>
int run_program(const std::string& program, int count, char** arguments, Body body) {
  try {
    const auto given = count > 0 ? static_cast<std::size_t>(count - 1) : 0;
    return body(std::span<const char* const>(arguments + 1, given));
  } catch (const std::exception& error) {
    print(stderr, program + ": " + error.what() + "\n");
    return exit_bad_input;
  }
}

}  // namespace latenz::probe
