// SPDX-License-Identifier: Apache-2.0
// Writes instructions and executes them, on this core and on another one that runs already.
#include "machine.h"

TABLE uint64_t top[512];
LINES uint32_t code[16];
volatile alone ready;
volatile alone written;
volatile alone done;

static void call(void) { ((void (*)(void))code)(); }

void program(void) {
  fill_tables();
  switch_on(1);
  start_second_core(second_start, 0);
  while (ready.value == 0) continue;
  ((volatile uint32_t*)code)[0] = 0xd65f03c0;  // ret
#if !defined(DEFECT_code_not_cleaned)
  unify(code);
#endif
#if !defined(DEFECT_no_barrier_before_drop)
  dsb();
#endif
#if defined(DEFECT_own_instructions_only)
  asm volatile("ic iallu");
#elif !defined(DEFECT_instructions_not_dropped)
  drop_code(code);
#endif
  dsb();
  isb();
  call();
  written.value = 1;
  while (done.value == 0) continue;
}

void second_core(uint64_t argument) {
  (void)argument;
  switch_on(1);
  ready.value = 1;
  while (written.value == 0) continue;
  isb();
  call();
  done.value = 1;
  for (;;) asm volatile("wfi");
}
