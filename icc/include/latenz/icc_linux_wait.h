/* SPDX-License-Identifier: Apache-2.0
 *
 * Sleeping under Linux for channels in C: included before latenz/icc.h, or before what `latenz icc
 * generate` writes, it makes all calls that wait sleep, and all that writes wake who sleeps. The
 * same futex(2) as `Sleep<Futex>` of C++, so that a side in C and one in C++ wake each other.
 * Memory of a device has no futexes: there a wait is a look every LATENZ_ICC_LONGEST_SLEEP_NS.
 *
 * Needs POSIX's clocks: -D_POSIX_C_SOURCE=200809L with -std=c99. */
#ifndef LATENZ_ICC_LINUX_WAIT_H
#define LATENZ_ICC_LINUX_WAIT_H

#ifndef __linux__
#error "latenz/icc_linux_wait.h is for programs under Linux"
#endif
#ifdef LATENZ_ICC_H
#error "latenz/icc_linux_wait.h comes before latenz/icc.h"
#endif

/* NOLINTBEGIN: this is C99, which clang-tidy reads as C++ where C++ includes it */

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#else
long syscall(long number, ...); /* not told by <unistd.h> to programs of strict C99 */
#endif

/* Sleeps while `*word` is `value`, until `licc_futex_wake`, at most so long. Signals do not end it.
 */
static inline void licc_futex_wait(uint32_t* word, uint32_t value, int64_t longest_ns) {
  struct timespec now;
  struct timespec until;
  long end[2]; /* as the call takes a time, which on 32-bit processors is older than `timespec` */
  int64_t end_ns;
  clock_gettime(CLOCK_MONOTONIC, &now);
  end_ns = now.tv_nsec + longest_ns;
  until.tv_sec = now.tv_sec + (time_t)(end_ns / 1000000000);
  until.tv_nsec = (long)(end_ns % 1000000000);
  end[0] = (long)until.tv_sec;
  end[1] = until.tv_nsec;
  while (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, end, (void*)0,
                 FUTEX_BITSET_MATCH_ANY) != 0) {
    if (errno == EFAULT) { /* memory of a device */
      while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, (struct timespec*)0) ==
             EINTR) {
      }
      return;
    }
    if (errno != EINTR) return; /* EAGAIN: another value; ETIMEDOUT */
  }
}

/* Wakes all who sleep on `word`. */
static inline void licc_futex_wake(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, (void*)0, (void*)0, 0);
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND */

#define LATENZ_ICC_SLEEP(word, value, longest_ns) licc_futex_wait((word), (value), (longest_ns))
#define LATENZ_ICC_WAKE(word) licc_futex_wake(word)

#endif
