/* SPDX-License-Identifier: Apache-2.0
 *
 * What `latenz icc try` gives a program in C99 on the emulated ZCU102; board.hpp is the same for
 * C++. To be included before what `latenz icc generate` has made. */
#ifndef LATENZ_BOARD_H
#define LATENZ_BOARD_H

#ifndef LATENZ_ICC_ZYNQMP
#define LATENZ_ICC_ZYNQMP
#endif
#include "latenz/icc.h"

/* On-chip memory that both processors map as Normal, not cacheable, at one address. */
#define LATENZ_BOARD_MEMORY ((void*)0xFFFD0000u)
enum { LATENZ_BOARD_BYTES = 0xF000 };

/* Says a line, which `latenz icc try` prints behind the processor's name. */
void latenz_board_print(const char* line);

/* Virtual time of this processor: 1 ns for each instruction of any. */
int64_t latenz_board_now_ns(void);

#endif
