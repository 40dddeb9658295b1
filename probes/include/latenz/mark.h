/* SPDX-License-Identifier: Apache-2.0
 * Tells `latenz attach` where a cycle of your loop begins and ends: call latenz_begin() and
 * latenz_end() in the thread that is measured; either may be left out. Copy this file; it needs no
 * library. Each is a system call without effect (prctl with an option that Linux does not have):
 * no right is needed, errno stays as it is. See docs/attach.md. */
#ifndef LATENZ_MARK_H
#define LATENZ_MARK_H

#include <errno.h>
#include <sys/prctl.h>

static inline void latenz_mark(unsigned long what) {
  const int kept = errno;
  (void)prctl(0x4C545A4D, what, 0UL, 0UL, 0UL);
  errno = kept;
}
static inline void latenz_begin(void) { latenz_mark(1UL); }
static inline void latenz_end(void) { latenz_mark(2UL); }

#endif
