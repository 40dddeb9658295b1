// SPDX-License-Identifier: Apache-2.0
// latenz-wakeup: measures how late threads wake up. docs/probe.md says how and what it means.
#include "wakeup.hpp"

#include "program.hpp"

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-wakeup", count, arguments,
                                    latenz::probe::measure_wakeups);
}
