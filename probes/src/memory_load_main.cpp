// SPDX-License-Identifier: Apache-2.0
// latenz-memory-load: keeps the memory of each CPU busy, and tells at its end how busy.
#include "memory_load_program.hpp"

#include "program.hpp"

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-memory-load", count, arguments,
                                    latenz::probe::load_memory);
}
