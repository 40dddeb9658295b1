// SPDX-License-Identifier: Apache-2.0
// Cleans its caches by set and way, and hands memory to somebody who reads it uncached.
#include "machine.h"

TABLE uint64_t top[512];
LINES volatile uint64_t message[8];
volatile uint64_t sum;

static void clean_level(uint64_t level, uint64_t sets, uint64_t ways, unsigned way_at) {
  for (uint64_t way = 0; way < ways; ++way) {
    for (uint64_t set = 0; set < sets; ++set) {
      asm volatile("dc csw, %0" ::"r"(way << way_at | set << 6 | level << 1) : "memory");
    }
  }
}

void program(void) {
  fill_tables();
  switch_on(1);
  message[0] = 1;
  clean_level(0, 128, 4, 30);
#if !defined(DEFECT_first_level_only)
  clean_level(1, 1024, 16, 28);
#endif
  dsb();
  sum = (*UNCACHED(message))[0];
}
void second_core(uint64_t argument) { (void)argument; }
