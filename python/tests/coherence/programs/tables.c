// SPDX-License-Identifier: Apache-2.0
// Adds a mapping while translation is on.
#include "machine.h"

TABLE uint64_t top[512];
volatile alone value = {3};
volatile uint64_t sum;

void program(void) {
  fill_tables();
#if defined(DEFECT_walks_not_cached)
  switch_on(0);
#else
  switch_on(1);
#endif
  volatile uint64_t* table = top;
#if defined(DEFECT_written_uncached)
  sum = table[3];
  (*UNCACHED(top))[3] = block(0x40000000, CACHED);
#else
  table[3] = block(0x40000000, CACHED);
#endif
  dsb();
  isb();
  sum = *(volatile uint64_t*)((uintptr_t)&value + 0x80000000);
}
void second_core(uint64_t argument) { (void)argument; }
