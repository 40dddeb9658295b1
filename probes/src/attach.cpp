// SPDX-License-Identifier: Apache-2.0
// latenz-attach: measures the cycles of running programs' threads. docs/attach.md says how and what
// it means.
#include <span>

#include "attach_session.hpp"
#include "program.hpp"

namespace {

int attach_or_read(std::span<const char* const> arguments) {
  return latenz::attach::attach(arguments, &latenz::attach::Session::read_trace);
}

}  // namespace

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-attach", count, arguments, attach_or_read);
}
