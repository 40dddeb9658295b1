// SPDX-License-Identifier: Apache-2.0
// Builds tables, switches translation and caches on, uses what was written before.
#include "machine.h"

TABLE uint64_t top[512];
volatile uint64_t counter;
volatile uint64_t sum;

__attribute__((noinline)) static uint64_t from_stack(void) {
  volatile uint64_t kept = 7;  // written before caches are on, read after
  fill_tables();
  switch_on(1);
  return kept;
}

void program(void) {
  sum = from_stack();
  sum = sum + counter;
}
void second_core(uint64_t argument) { (void)argument; }
