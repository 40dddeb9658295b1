// SPDX-License-Identifier: Apache-2.0
// Writes two lines through caches; another reads them from memory.
#include "machine.h"

TABLE uint64_t top[512];
LINES volatile uint64_t message[16];
volatile uint64_t sum;

void program(void) {
  fill_tables();
  switch_on(1);
  for (int i = 0; i < 16; ++i) message[i] = i;
#if defined(DEFECT_not_cleaned)
#elif defined(DEFECT_half_cleaned)
  clean((void*)&message[0]);
#elif defined(DEFECT_cleaned_for_code)
  unify((void*)&message[0]);
  unify((void*)&message[8]);
#elif defined(DEFECT_invalidated_instead)
  drop((void*)&message[0]);
  drop((void*)&message[8]);
#else
  clean((void*)&message[0]);
  clean((void*)&message[8]);
#endif
#if !defined(DEFECT_no_barrier)
  dsb();
#endif
  for (int i = 0; i < 16; ++i) sum = (*UNCACHED(message))[i];
}
void second_core(uint64_t argument) { (void)argument; }
