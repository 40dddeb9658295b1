// SPDX-License-Identifier: Apache-2.0
// Loaded into QEMU before its libraries: delays that a loaded host may cause, in nearly every wait.
//
// Leaving emulated code (siglongjmp) and waking up QEMU's main thread (ppoll) take a random time. A
// core that executes WFI has then often not left its code when the main thread looks.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void delay(long most_us) {
  struct timespec duration = {0, random() % most_us * 1000};
  nanosleep(&duration, NULL);
}

void __longjmp_chk(struct __jmp_buf_tag env[1], int value) {
  static void (*original)(struct __jmp_buf_tag*, int);
  if (original == NULL) original = dlsym(RTLD_NEXT, "__longjmp_chk");
  delay(100);
  original(env, value);
  abort();
}

int ppoll(struct pollfd* files, nfds_t count, const struct timespec* limit, const sigset_t* mask) {
  static int (*original)(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*);
  if (original == NULL) original = dlsym(RTLD_NEXT, "ppoll");
  const int found = original(files, count, limit, mask);
  if (gettid() == getpid()) delay(4000);
  return found;
}

int __ppoll_chk(struct pollfd* files, nfds_t count, const struct timespec* limit,
                const sigset_t* mask, size_t size) {
  (void)size;
  return ppoll(files, count, limit, mask);
}
