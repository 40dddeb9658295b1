// SPDX-License-Identifier: Apache-2.0
// What the small programs share: translation at EL2, and maintenance by address.
//
// Memory is mapped twice: cached where it is, and uncached 1 GiB above.
#pragma once

#include <stdint.h>

#define UNCACHED(object) ((volatile __typeof__(object)*)((uintptr_t)&(object) + 0x40000000))
#define TABLE __attribute__((section(".tables"), aligned(4096)))
#define LINES __attribute__((aligned(64)))

/// A value alone in its line.
typedef union {
  uint64_t value;
  uint8_t line[64];
} LINES alone;

enum { DEVICE = 0, CACHED = 1, NOT_CACHED = 2 };

static inline uint64_t block(uint64_t address, uint64_t attribute) {
  return address | attribute << 2 | 3u << 8 | 1u << 10 | 1u;
}

static inline void dsb(void) { asm volatile("dsb sy" ::: "memory"); }
static inline void isb(void) { asm volatile("isb" ::: "memory"); }
static inline void clean(const void* p) { asm volatile("dc cvac, %0" ::"r"(p) : "memory"); }
static inline void unify(const void* p) { asm volatile("dc cvau, %0" ::"r"(p) : "memory"); }
static inline void drop(const void* p) { asm volatile("dc ivac, %0" ::"r"(p) : "memory"); }
static inline void flush(const void* p) { asm volatile("dc civac, %0" ::"r"(p) : "memory"); }
static inline void drop_code(const void* p) { asm volatile("ic ivau, %0" ::"r"(p) : "memory"); }

extern TABLE uint64_t top[512];

static inline void fill_tables(void) {
  volatile uint64_t* table = top;
  table[0] = block(0, DEVICE);
  table[1] = block(0x40000000, CACHED);
  table[2] = block(0x40000000, NOT_CACHED);
}

/// `walks`: 1 cached, 0 not.
static inline void switch_on(uint64_t walks) {
  const uint64_t control = 32 | walks << 8 | walks << 10 | 3 << 12 | 2 << 16 | 1u << 23 | 1u << 31;
  asm volatile(
      "dsb sy\n msr mair_el2, %0\n msr tcr_el2, %1\n msr ttbr0_el2, %2\n isb\n"
      "tlbi alle2\n ic iallu\n dsb sy\n isb\n msr sctlr_el2, %3\n isb" ::"r"(0x44ff00ul),
      "r"(control), "r"(top), "r"(0x30c51835ul)
      : "memory");
}

static inline long start_second_core(void (*entry)(void), uint64_t argument) {
  register uint64_t x0 asm("x0") = 0xC4000003;  // PSCI CPU_ON
  register uint64_t x1 asm("x1") = 1;
  register uint64_t x2 asm("x2") = (uint64_t)entry;
  register uint64_t x3 asm("x3") = argument;
  asm volatile("smc #0"
               : "+r"(x0)
               : "r"(x1), "r"(x2), "r"(x3)
               : "memory", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                 "x15", "x16", "x17");
  return (long)x0;
}

void program(void);
void second_core(uint64_t argument);
void second_start(void);
void run_guest(void (*entry)(void), void* stack);
