/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a loop of a known kind that stamps itself: what attach finds is held against it.
 *
 *   rhythm KIND PERIOD_NS CYCLES STAMPS [WORK_NS]
 *
 * It ends after so many cycles, or by SIGUSR1. STAMPS gets, for each cycle, when it was due and when the program read the clock first and last
 * (three 64-bit integers, CLOCK_MONOTONIC). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../probes/include/latenz/mark.h"

struct stamp {
  int64_t due, woke, done;
};
static struct stamp* stamps;
static int64_t period, cycles, work, taken;
static const char* path;
static int loud, quiet;
static int marks;  /* RHYTHM_MARKS: 1 begins, 2 ends, 4 pauses before its begin, 8 after its end */
static volatile sig_atomic_t ending;

static void end(int number) {
  (void)number;
  ending = 1;
}

static int64_t now_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int64_t now(void) { return now_of(CLOCK_MONOTONIC); }
static struct timespec spec(int64_t ns) {
  return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* ---- what makes some cycles late: RHYTHM_PLANT names it */

static const char* plant = "";
static int ends[2];
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int wanted;
#define PLANTED_NS 40000000LL

static void spin(int64_t ns) {
  for (const int64_t until = now() + ns; now() < until;) {
  }
}

static void real_time(int priority) {
  const struct sched_param param = {.sched_priority = priority};
  pthread_setschedparam(pthread_self(), priority > 0 ? SCHED_FIFO : SCHED_OTHER, &param);
}

static void* read_slowly(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "slow-reader");
  real_time(0);
  static char buffer[1 << 16];
  for (;;) {
    usleep(PLANTED_NS / 1000);
    if (read(ends[0], buffer, sizeof buffer) <= 0) return NULL;
  }
}

static void* hold_lock(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "low-holder");
  real_time(0);
  for (;;) {
    while (!atomic_load(&wanted)) usleep(500);
    pthread_mutex_lock(&shared);
    atomic_store(&wanted, 0);
    usleep(PLANTED_NS / 1000);
    pthread_mutex_unlock(&shared);
  }
  return unused;
}

/* ---- a queue of threads as urgent as the loop for one lock, each of which holds it for long */

#define QUEUED 4

static void* queue_up(void* unused) {
  prctl(PR_SET_NAME, "queued");
  real_time(40);
  for (;;) {
    pthread_mutex_lock(&shared);
    usleep(PLANTED_NS / 1000 / QUEUED);
    pthread_mutex_unlock(&shared);
    usleep(1000);
  }
  return unused;
}

static void* hog(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "high-hog");
  real_time(90);
  for (;;) {
    usleep(400000);
    spin(PLANTED_NS);
  }
  return unused;
}

/* ---- one packet to very many sockets: all of them are served in one softirq */

#define SOCKETS 6000

static void* flood(void* unused) {
  prctl(PR_SET_NAME, "flooder");
  real_time(0);
  const struct rlimit many = {.rlim_cur = SOCKETS + 100, .rlim_max = SOCKETS + 100};
  setrlimit(RLIMIT_NOFILE, &many);
  const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(47011), .sin_addr.s_addr = htonl(0x7fffffff)};
  const int on = 1;
  for (int i = 0; i < SOCKETS; ++i) {
    const int each = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(each, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(each, (const struct sockaddr*)&to, sizeof to) != 0) _exit(5);
  }
  const int from = socket(AF_INET, SOCK_DGRAM, 0);
  setsockopt(from, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
  for (;;) {
    sendto(from, "x", 1, 0, (const struct sockaddr*)&to, sizeof to);
    usleep(50000);
  }
  return unused;
}

/* ---- a process made beside: the loop's memory is copied where it is written next */

#define SHARED_BYTES (4UL << 20)
static char* buffer;

static void* fork_beside(void* unused) {
  prctl(PR_SET_NAME, "forker");
  real_time(0);
  for (;;) {
    usleep(400000);
    const pid_t child = fork();
    if (child == 0) {
      usleep(100000);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  return unused;
}

static void take_memory(void) {
  buffer = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(buffer, SHARED_BYTES, MADV_NOHUGEPAGE);
  memset(buffer, 1, SHARED_BYTES);
}

/* ---- a clock that is set beside: TAI goes on by a second, and nobody's time of day changes */

static void* set_clock(void* unused) {
  prctl(PR_SET_NAME, "clock-setter");
  for (;;) {
    for (int seconds = 1; seconds >= 0; --seconds) {
      struct timex set = {.modes = ADJ_TAI, .constant = seconds};
      usleep(seconds > 0 ? 1400000 : 300000);
      adjtimex(&set);
    }
  }
  return unused;
}

static void start(void* (*body)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, body, NULL);
}

static void prepare_plant(void) {
  if (strcmp(plant, "pipe") == 0) {
    if (pipe2(ends, O_CLOEXEC) != 0) _exit(4);
    start(read_slowly);
  }
  if (strcmp(plant, "inversion") == 0) start(hold_lock);
  if (strcmp(plant, "hog") == 0) start(hog);
  for (int i = 0; strcmp(plant, "convoy") == 0 && i < QUEUED; ++i) start(queue_up);
  if (strcmp(plant, "softirq") == 0) start(flood);
  if (strcmp(plant, "throttle") == 0) work = period - period / 50;  // of 100 %, 95 are allowed
  if (strcmp(plant, "fork") == 0) {
    take_memory();
    start(fork_beside);
  }
  if (strcmp(plant, "clock") == 0) start(set_clock);
}

static void move_about(void) {
  for (int move = 0; move < 400; ++move) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(move % 2, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

static void log_to_disk(void) {
  static int log = -1;
  static char text[1 << 20];
  if (log < 0) log = open(getenv("RHYTHM_LOG"), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  for (int i = 0; i < 8; ++i) {
    if (pwrite(log, text, sizeof text, i << 20) < 0) _exit(4);
    fsync(log);
  }
}

/* More than the control group may have: each page is got by taking another one from the file that
 * many processes map, and so from each of them. */
#define MAPPED_BYTES (24UL << 20)
#define MAPPERS 12

static void map_file(void) {
  const int file = open(getenv("RHYTHM_LOG"), O_RDONLY);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  for (int i = 0; i < MAPPERS; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "mapper");
    volatile const char* all = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_SHARED, file, 0);
    for (;;) {
      for (size_t at = 0; at < MAPPED_BYTES; at += 4096) (void)all[at];
      usleep(200000);
    }
  }
}

static void use_memory(void) {
  const size_t size = 8UL << 20;
  char* fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (size_t at = 0; at < size; at += 4096) fresh[at] = 1;
  munmap(fresh, size);
}

static void join_group(const char* path) {
  const int tasks = open(path, O_WRONLY);
  if (tasks < 0 || write(tasks, "0", 1) != 1) _exit(6);
  close(tasks);
}

static void planted(void) {
  static char block[1 << 16];
  if (strcmp(plant, "fork") == 0) {
    for (size_t at = 0; at < SHARED_BYTES; at += 4096) buffer[at] = 2;
  }
  if (taken % 400 != 399) return;
  if (strcmp(plant, "pipe") == 0) {
    // the reader may wait and take the first as a whole; the third finds it asleep and the pipe full
    for (int written = 0; written < 3; ++written) {
      if (write(ends[1], block, sizeof block) < 0) _exit(4);
    }
  }
  if (strcmp(plant, "inversion") == 0) {
    atomic_store(&wanted, 1);
    while (atomic_load(&wanted)) usleep(200);
    pthread_mutex_lock(&shared);
    pthread_mutex_unlock(&shared);
  }
  if (strcmp(plant, "convoy") == 0) {
    pthread_mutex_lock(&shared);
    pthread_mutex_unlock(&shared);
  }
  if (strcmp(plant, "faults") == 0) {
    const size_t size = 64UL << 20;
    char* fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(fresh, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096) fresh[at] = 1;
    munmap(fresh, size);
  }
  if (strcmp(plant, "migration") == 0) move_about();
  if (strcmp(plant, "disk") == 0) log_to_disk();
  if (strcmp(plant, "reclaim") == 0) use_memory();
  if (strcmp(plant, "work") == 0) spin(PLANTED_NS);
  if (strcmp(plant, "pause") == 0) usleep(PLANTED_NS / 1000);
}

/* Where tests have cycles begin and end, by each of the ways that there are. */
__attribute__((noinline)) void begin_here(void) { __asm__ volatile(""); }
__attribute__((noinline)) void end_here(void) { __asm__ volatile(""); }

/* A static probe as <sys/sdt.h> makes it, which is not installed everywhere. */
#if defined(__x86_64__) || defined(__aarch64__)
#define STATIC_PROBE(name)                                                       \
  __asm__ volatile(                                                              \
      "990: nop\n"                                                               \
      ".pushsection .note.stapsdt,\"?\",\"note\"\n"                              \
      ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                             \
      "991: .asciz \"stapsdt\"\n992: .balign 4\n"                               \
      "993: .8byte 990b, _.stapsdt.base, 0\n"                                    \
      ".asciz \"rhythm\"\n.asciz \"" name "\"\n.asciz \"\"\n"                  \
      "994: .balign 4\n.popsection\n"                                           \
      ".ifndef _.stapsdt.base\n"                                                 \
      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"    \
      ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n" \
      ".size _.stapsdt.base,1\n.popsection\n.endif\n")
#else
#define STATIC_PROBE(name)
#endif

static void reach_begin(void) {
  begin_here();
  STATIC_PROBE("begins");
  if (marks & 1) latenz_begin();
}

static void reach_end(void) {
  end_here();
  STATIC_PROBE("ends");
  if (marks & 2) latenz_end();
}

static void cycle(int64_t due) {
  if (marks & 4) usleep(100);  /* before its begin */
  const int64_t woke = now();
  reach_begin();
  planted();
  while (work > 0 && now() - woke < work) {
  }
  if (loud) dprintf(quiet, "cycle %lld\n", (long long)taken);
  stamps[taken] = (struct stamp){due, woke, now()};
  reach_end();
  if (marks & 8) usleep(100);  /* after its end */
  ++taken;
}

static void finish(void) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(stamps, sizeof *stamps, taken, file) != (size_t)taken) _exit(1);
  fclose(file);
}

static void absolute(clockid_t clock) {
  const int64_t ahead = clock == CLOCK_MONOTONIC ? 0 : now_of(clock) - now();
  int64_t due = now_of(clock) + 10000000;
  while (taken < cycles && !ending) {
    const struct timespec until = spec(due);
    while (clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL) == EINTR && !ending) {
    }
    cycle(due - ahead);
    due += period;
    while (due <= now_of(clock)) due += period;
  }
}

static void relative(void) {
  while (taken < cycles && !ending) {
    const struct timespec pause = spec(period);
    const int64_t due = now() + period;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    cycle(due);
  }
}

static void timer_fd(int with_epoll) {
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  const int poll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  int64_t due = now() + 10000000;
  const struct itimerspec set = {.it_interval = spec(period), .it_value = spec(due)};
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &set, NULL);
  while (taken < cycles && !ending) {
    if (with_epoll && epoll_wait(poll, &event, 1, -1) != 1) continue;
    uint64_t expired = 0;
    if (read(fd, &expired, sizeof expired) != sizeof expired) continue;
    due += (int64_t)(expired - 1) * period;
    cycle(due);
    due += period;
  }
}

static void signalled(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  int64_t due = now() + 10000000;
  const struct itimerspec times = {.it_interval = spec(period), .it_value = spec(due)};
  timer_settime(timer, TIMER_ABSTIME, &times, NULL);
  while (taken < cycles && !ending) {
    siginfo_t info;
    if (sigwaitinfo(&set, &info) < 0) continue;
    due += (int64_t)info.si_overrun * period;
    cycle(due);
    due += period;
  }
}

static _Atomic uint32_t word;
static _Atomic int64_t handed;

static void* take_over(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "taker");
  uint32_t seen = 0;
  while (taken < cycles && !ending) {
    while (atomic_load(&word) == seen && !ending) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL);
    seen = atomic_load(&word);
    cycle(atomic_load(&handed));
  }
  return NULL;
}

static void hand_over(void) {
  pthread_t taker;
  pthread_create(&taker, NULL, take_over, NULL);
  int64_t due = now() + 10000000;
  while (taken < cycles && !ending) {
    const struct timespec until = spec(due);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    atomic_store(&handed, now());
    atomic_fetch_add(&word, 1);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
    due += period;
    while (due <= now()) due += period;
  }
  atomic_fetch_add(&word, 1);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
  pthread_join(taker, NULL);
}

static void deadline(void) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } want = {.size = 48, .policy = 6, .runtime = period / 2, .deadline = period, .period = period};
  if (syscall(SYS_sched_setattr, 0, &want, 0) != 0) {
    perror("rhythm: SCHED_DEADLINE");
    _exit(3);
  }
  while (taken < cycles && !ending) {
    sched_yield();
    cycle(0);
  }
}

int main(int count, char** arguments) {
  if (count < 5) return 2;
  const struct sigaction ends = {.sa_handler = end};
  sigaction(SIGUSR1, &ends, NULL);
  const char* kind = arguments[1];
  period = atoll(arguments[2]);
  cycles = atoll(arguments[3]);
  path = arguments[4];
  work = count > 5 ? atoll(arguments[5]) : 0;
  stamps = calloc(cycles + 1, sizeof *stamps);
  memset(stamps, 1, (cycles + 1) * sizeof *stamps);
  prctl(PR_SET_TIMERSLACK, 1);
  const struct sched_param fifo = {.sched_priority = 40};
  const int is_ordinary = getenv("RHYTHM_ORDINARY") != NULL || strcmp(kind, "deadline") == 0;
  loud = getenv("RHYTHM_LOUD") != NULL;
  if (getenv("RHYTHM_MARKS") != NULL) marks = atoi(getenv("RHYTHM_MARKS"));
  quiet = open("/dev/null", O_WRONLY);
  if (getenv("RHYTHM_PLANT") != NULL) plant = getenv("RHYTHM_PLANT");
  if (getenv("RHYTHM_CPU") != NULL) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(getenv("RHYTHM_CPU")), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  if (getenv("RHYTHM_GROUP") != NULL) join_group(getenv("RHYTHM_GROUP"));
  if (strcmp(plant, "reclaim") == 0) map_file();  // as an ordinary program
  if (!is_ordinary) sched_setscheduler(0, SCHED_FIFO, &fifo);
  prepare_plant();
  if (getenv("RHYTHM_LOCKED") != NULL) mlockall(MCL_CURRENT | MCL_FUTURE);
  if (strcmp(kind, "absolute") == 0) absolute(CLOCK_MONOTONIC);
  if (strcmp(kind, "realtime") == 0) absolute(CLOCK_REALTIME);
  if (strcmp(kind, "tai") == 0) absolute(CLOCK_TAI);
  if (strcmp(kind, "relative") == 0) relative();
  if (strcmp(kind, "timerfd") == 0) timer_fd(0);
  if (strcmp(kind, "epoll") == 0) timer_fd(1);
  if (strcmp(kind, "signal") == 0) signalled();
  if (strcmp(kind, "futex") == 0) hand_over();
  if (strcmp(kind, "deadline") == 0) deadline();
  finish();
  return 0;
}
