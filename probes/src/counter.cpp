// SPDX-License-Identifier: Apache-2.0
// latenz-counter: prints the board's counter in nanoseconds, so that programs in different guests
// can tell what came before what.
#include <cstdio>
#include <string>

#include "failure.hpp"
#include "options.hpp"
#include "program.hpp"
#include "system_counter.hpp"

namespace {

int print_counter(std::span<const char* const> arguments) {
  if (!arguments.empty()) throw latenz::probe::Failure("takes no arguments");
  latenz::probe::print(stdout, std::to_string(latenz::probe::system_counter_ns()) + "\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-counter", count, arguments, print_counter);
}
