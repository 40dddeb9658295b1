// SPDX-License-Identifier: Apache-2.0
// latenz-cpu-load: keeps CPUs busy without touching memory, and tells at its end how busy.
#include "cpu_load.hpp"

#include "program.hpp"

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-cpu-load", count, arguments, latenz::probe::load_cpus);
}
