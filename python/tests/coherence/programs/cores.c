// SPDX-License-Identifier: Apache-2.0
// Starts a second core, which runs without caches: it is given something and gives something back.
#include "machine.h"

TABLE uint64_t top[512];
volatile alone given;
volatile alone returned;
volatile uint64_t sum;

void program(void) {
  fill_tables();
  switch_on(1);
  given.value = 5;
  sum = returned.value;
#if !defined(DEFECT_given_not_cleaned)
  clean((void*)&given);
  dsb();
#endif
  flush((void*)&returned);
  dsb();
  start_second_core(second_start, 0);
  do {
#if !defined(DEFECT_returned_not_dropped)
    flush((void*)&returned);
    dsb();
#endif
    sum = returned.value;
  } while (sum == 0);
}

void second_core(uint64_t argument) {
  (void)argument;
  returned.value = given.value;
  dsb();
  for (;;) asm volatile("wfi");
}
