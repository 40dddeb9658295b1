/* SPDX-License-Identifier: Apache-2.0
 *
 * Sleeping under Linux until a file descriptor is readable, for channels in C that wait beside
 * other things by poll(2) or epoll(7): included before latenz/icc.h, or before what `latenz icc
 * generate` writes. The same eventfds as `Sleep<EventFd>` of C++, so that a side in C and one in
 * C++ wake each other.
 *
 * Each side of a channel has one eventfd(2), and each process all of them:
 *
 *   latenz_icc_eventfds bells;
 *   latenz_icc_eventfds_create(&bells, 2);                before fork(2), which the child inherits
 *   latenz_icc_eventfds_send(&bells, socket);             or to another process, by SCM_RIGHTS
 *   latenz_icc_eventfds_receive(&bells, 2, socket);
 *
 *   servo_server_use_bells(&server, &bells);              first, after create or attach
 *
 * Who keeps them for a side that may die and start anew is the process that created them.
 *
 * Needs POSIX's clocks: -D_POSIX_C_SOURCE=200809L with -std=c99. */
#ifndef LATENZ_ICC_LINUX_EVENTFD_H
#define LATENZ_ICC_LINUX_EVENTFD_H

#ifndef __linux__
#error "latenz/icc_linux_eventfd.h is for programs under Linux"
#endif
#ifdef LATENZ_ICC_H
#error "latenz/icc_linux_eventfd.h comes before latenz/icc.h"
#endif
#ifdef LATENZ_ICC_LINUX_WAIT_H
#error "a program sleeps by futexes or by eventfds: include one of the two headers"
#endif

/* NOLINTBEGIN: this is C99, which clang-tidy reads as C++ where C++ includes it */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#else
long syscall(long number, ...); /* not told by <unistd.h> to programs of strict C99 */
#endif

enum { LATENZ_ICC_MOST_SIDES = 33 }; /* of a ring or a latest with 32 readers */

/* The eventfds of all sides of a channel, by number of the side; side 0 is the one that writes (or
 * the client). They outlive the endpoints that use them. */
typedef struct {
  uint32_t sides;
  int of[LATENZ_ICC_MOST_SIDES];
} latenz_icc_eventfds;

/* The one that wakes this side; -1: there is none. */
static inline int latenz_icc_eventfd_of(const latenz_icc_eventfds* all, uint32_t side) {
  return all != NULL && side < all->sides ? all->of[side] : -1;
}

/* Closes them. */
static inline void latenz_icc_eventfds_close(latenz_icc_eventfds* all) {
  uint32_t side;
  for (side = 0; side < all->sides; ++side) {
    if (all->of[side] >= 0) close(all->of[side]);
  }
  all->sides = 0;
}

/* New ones, for 1 and the readers of the channel; false: `errno` says why, and there are none. Not
 * inherited by programs started by execve(2). */
static inline bool latenz_icc_eventfds_create(latenz_icc_eventfds* all, uint32_t sides) {
  all->sides = 0;
  if (sides < 1 || sides > LATENZ_ICC_MOST_SIDES) {
    errno = EINVAL;
    return false;
  }
  while (all->sides < sides) {
    const int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0) {
      const int why = errno;
      latenz_icc_eventfds_close(all);
      errno = why;
      return false;
    }
    all->of[all->sides++] = made;
  }
  return true;
}

/* A message that carries them, and says how many. */
typedef struct {
  uint32_t told;
  struct iovec part;
  size_t rights[CMSG_SPACE(sizeof(int) * LATENZ_ICC_MOST_SIDES) / sizeof(size_t) + 1]; /* aligned */
  struct msghdr header;
} licc_letter;

static inline void licc_letter_open(licc_letter* letter, uint32_t sides) {
  memset(letter, 0, sizeof *letter);
  letter->told = sides;
  letter->part.iov_base = &letter->told;
  letter->part.iov_len = sizeof letter->told;
  letter->header.msg_iov = &letter->part;
  letter->header.msg_iovlen = 1;
  letter->header.msg_control = letter->rights;
  letter->header.msg_controllen = CMSG_LEN(sizeof(int) * sides); /* no room for more than these */
}

/* Sends them through a Unix socket to another process, in C or C++, which uses the same ones from
 * then on; false: `errno` says why. */
static inline bool latenz_icc_eventfds_send(const latenz_icc_eventfds* all, int socket) {
  licc_letter letter;
  struct cmsghdr* rights;
  ssize_t bytes;
  licc_letter_open(&letter, all->sides);
  rights = CMSG_FIRSTHDR(&letter.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int) * all->sides);
  memcpy(CMSG_DATA(rights), all->of, sizeof(int) * all->sides);
  do {
    bytes = sendmsg(socket, &letter.header, MSG_NOSIGNAL);
  } while (bytes < 0 && errno == EINTR);
  return bytes == (ssize_t)sizeof letter.told;
}

/* Those that another process sends. Blocks until they are there; false: `errno` says why, EPROTO if
 * what came are not the eventfds of a channel with as many sides, or the sender has closed the
 * socket. */
static inline bool latenz_icc_eventfds_receive(latenz_icc_eventfds* all, uint32_t sides,
                                               int socket) {
  licc_letter letter;
  const struct cmsghdr* rights;
  ssize_t bytes;
  all->sides = 0;
  if (sides < 1 || sides > LATENZ_ICC_MOST_SIDES) {
    errno = EINVAL;
    return false;
  }
  licc_letter_open(&letter, sides);
  do {
    bytes = recvmsg(socket, &letter.header, MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return false;
  rights = CMSG_FIRSTHDR(&letter.header);
  if (rights != NULL && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
    const uint32_t came = (uint32_t)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    all->sides = came < sides ? came : sides;
    memcpy(all->of, CMSG_DATA(rights), sizeof(int) * all->sides);
  }
  if (all->sides != sides || letter.told != sides || (letter.header.msg_flags & MSG_CTRUNC) != 0) {
    latenz_icc_eventfds_close(all);
    errno = EPROTO;
    return false;
  }
  return true;
}

static inline int64_t licc_eventfd_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* Sleeps until this side's bell is rung, at most so long. Signals do not end it. Without eventfds
 * it sleeps all the time. */
static inline void licc_eventfd_await(const latenz_icc_eventfds* all, uint32_t side,
                                      int64_t longest_ns) {
  const int64_t end_ns = licc_eventfd_now_ns() + longest_ns;
  int64_t left_ns = longest_ns;
  struct pollfd bell;
  bell.fd = latenz_icc_eventfd_of(all, side);
  bell.events = POLLIN;
  bell.revents = 0;
  do {            /* the call itself, since ppoll(3) is not told to programs of POSIX */
    long left[2]; /* as it takes a time, which on 32-bit processors is older than `timespec` */
    left[0] = (long)(left_ns / 1000000000);
    left[1] = (long)(left_ns % 1000000000);
    if (syscall(SYS_ppoll, &bell, 1, left, (void*)0, 0) >= 0 || errno != EINTR) return;
    left_ns = end_ns - licc_eventfd_now_ns();
  } while (left_ns > 0);
}
static inline void licc_eventfd_silence(const latenz_icc_eventfds* all, uint32_t side) {
  eventfd_t rings = 0;
  (void)eventfd_read(latenz_icc_eventfd_of(all, side), &rings); /* EAGAIN: none */
}
static inline void licc_eventfd_ring(const latenz_icc_eventfds* all, uint32_t side) {
  (void)eventfd_write(latenz_icc_eventfd_of(all, side), 1);
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND */

#define LATENZ_ICC_BELLS const latenz_icc_eventfds*
#define LATENZ_ICC_BELL_COUNT(bells) ((bells)->sides)
#define LATENZ_ICC_BELL_FD(bells, side) latenz_icc_eventfd_of((bells), (side))
#define LATENZ_ICC_SILENCE_BELL(bells, side) licc_eventfd_silence((bells), (side))
#define LATENZ_ICC_RING_BELL(bells, side) licc_eventfd_ring((bells), (side))
#define LATENZ_ICC_AWAIT_BELL(bells, side, longest_ns) \
  licc_eventfd_await((bells), (side), (longest_ns))

#endif
