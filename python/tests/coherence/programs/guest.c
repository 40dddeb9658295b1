// SPDX-License-Identifier: Apache-2.0
// A hypervisor and a guest whose translation is off: it is told something, and tells something.
#include "machine.h"

TABLE uint64_t top[512];
TABLE uint64_t stage2[1024];
volatile alone information;
volatile alone report;
volatile uint64_t sum;

static void guest(void) {
  uint64_t told = information.value;
  report.value = told + 1;
  asm volatile("hvc #0");
}

static void switch_stage2_on(void) {
  volatile uint64_t* table = stage2;
  const uint64_t normal = 0xf << 2 | 3 << 6 | 3 << 8 | 1 << 10 | 1;
  table[1] = 0x40000000 | normal;
#if defined(DEFECT_stage2_not_cleaned)
  const uint64_t walks = 0;
#else
  const uint64_t walks = 1;
#endif
  const uint64_t control = 32 | 1 << 6 | walks << 8 | walks << 10 | 3 << 12 | 2 << 16 | 1u << 31;
  asm volatile("dsb sy\n msr vtcr_el2, %0\n msr vttbr_el2, %1\n msr hcr_el2, %2\n isb\n"
               "tlbi vmalls12e1\n dsb sy\n isb" ::"r"(control), "r"(stage2), "r"(0x80000001ul)
               : "memory");
}

void program(void) {
  fill_tables();
  switch_on(1);
  information.value = 5;
  sum = report.value;
  switch_stage2_on();
#if !defined(DEFECT_information_not_cleaned)
  clean((void*)&information);
#endif
#if !defined(DEFECT_information_without_barrier)
  dsb();
#endif
  run_guest(guest, (void*)0x40070000);
#if !defined(DEFECT_report_not_dropped)
  flush((void*)&report);
  dsb();
#endif
  sum = report.value;
}
void second_core(uint64_t argument) { (void)argument; }
