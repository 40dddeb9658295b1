// SPDX-License-Identifier: Apache-2.0
// Another writes memory that was cached here before; then it is read through caches.
#include "machine.h"

TABLE uint64_t top[512];
struct {
  uint64_t theirs;
#if !defined(DEFECT_shared_line)
  uint64_t padding[7];
#endif
  uint64_t ours;
  uint64_t rest[7];
} LINES data;
volatile uint64_t sum;

void program(void) {
  fill_tables();
  switch_on(1);
  volatile __typeof__(data)* mine = &data;
  sum = mine->theirs;
  mine->ours = 1;
#if defined(DEFECT_dropped_before)
  flush(&data.theirs);
  dsb();
#endif
  UNCACHED(data)->theirs = 5;
  dsb();
#if defined(DEFECT_never_dropped) || defined(DEFECT_dropped_before)
#elif defined(DEFECT_cleaned_instead)
  clean(&data.theirs);
  dsb();
#else
  flush(&data.theirs);
  dsb();
#endif
  sum = mine->theirs;
  sum = mine->ours;
}
void second_core(uint64_t argument) { (void)argument; }
