/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a channel of icc/examples/robot.toml in C: torture_languages CHANNEL first|second
 * FILE MESSAGES. Each message tells its number in all of it; says how many were wrong. Compiled
 * with SLEEPS, sides wait asleep; with SLEEPS_BY_FD too, by eventfds, which come through the socket
 * that is standard input.
 *
 * On a board (TORTURE_ON_BOARD) it is all channels in turn, and then with exchanged sides. */
#ifdef TORTURE_ON_BOARD
#include "latenz/board.h"
#define sched_yield() LATENZ_ICC_PAUSE()
#define exit(code) latenz_board_print("cannot create")
#else
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef SLEEPS_BY_FD /* until it is woken: one wake-up that is lost, and it stands still */
#include "latenz/icc_linux_eventfd.h"
#undef LATENZ_ICC_AWAIT_BELL
#define LATENZ_ICC_AWAIT_BELL(bells, side, longest_ns) \
  licc_eventfd_await((bells), (side), 600000000000)
#elif defined(SLEEPS)
#include "latenz/icc_linux_wait.h"
#undef LATENZ_ICC_SLEEP
#define LATENZ_ICC_SLEEP(word, value, longest_ns) licc_futex_wait((word), (value), 600000000000)
#else
#define LATENZ_ICC_PAUSE() ((void)sched_yield())
#define LATENZ_ICC_LOOKS_PER_CHECK 1u
#define LATENZ_ICC_CHECKS_PER_BEAT 1u
#endif
#define LATENZ_ICC_SILENT_BEATS (1u << 22)
#endif
#include <string.h>

#include "robot.h"

#ifdef SLEEPS_BY_FD
static latenz_icc_eventfds bells;
#define GET_READY(end) require(latenz_icc_use_bells(&(end).state.endpoint, &bells))
#else
#define GET_READY(end) ((void)0)
#endif

static uint32_t errors;
static uint32_t messages;
static latenz_icc_problem problem;

static void require(bool right) { errors += right ? 0u : 1u; }

static State state_of(uint32_t number) {
  State state;
  memset(&state, 0, sizeof state); /* padding, which not all languages copy */
  memset(&state, (int)(number % 251u), offsetof(State, name) + sizeof state.name);
  state.time_ns = number;
  return state;
}
static void check_state(const State* got) {
  const State wanted = state_of((uint32_t)got->time_ns);
  require(memcmp(got, &wanted, sizeof wanted) == 0);
}

static void command(void* memory, size_t size, bool first) {
  uint32_t n;
  if (first) {
    command_writer writer;
    if (!command_writer_create(&writer, memory, size, "command", &problem)) exit(2);
    GET_READY(writer);
    for (n = 1; n <= messages; ++n) {
      const Target target = {(float)n, n};
      Target* place;
      if (n % 3u == 0 && command_writer_try_loan(&writer, &place) == LATENZ_ICC_OK) {
        *place = target;
        command_writer_publish(&writer);
        continue;
      }
      while (command_writer_write(&writer, &target, NULL) != LATENZ_ICC_OK) {
      }
    }
  } else {
    command_reader reader;
    while (!command_reader_attach(&reader, memory, size, &problem)) sched_yield();
    GET_READY(reader);
    for (n = 1; n <= messages; ++n) {
      Target target = {0, 0};
      const Target* place;
      if (n % 2u == 0 && command_reader_try_take(&reader, &place) == LATENZ_ICC_OK) {
        require(place->cycle == n && place->angle == (float)n);
        require(command_reader_release(&reader) == LATENZ_ICC_OK);
        continue;
      }
      while (command_reader_read(&reader, &target, NULL) != LATENZ_ICC_OK) {
      }
      require(target.cycle == n && target.angle == (float)n);
    }
  }
}

static void servo(void* memory, size_t size, bool first) {
  uint32_t n;
  if (first) {
    servo_client client;
    if (!servo_client_create(&client, memory, size, "servo", &problem)) exit(2);
    GET_READY(client);
    for (n = 1; n <= messages; ++n) {
      const Target target = {(float)n, n};
      Reached reached = {0, 0};
      while (servo_client_call(&client, &target, &reached, NULL) != LATENZ_ICC_OK) {
      }
      require(reached.cycle == n + 1u && reached.angle == (float)n);
    }
  } else {
    servo_server server;
    while (!servo_server_attach(&server, memory, size, &problem)) sched_yield();
    GET_READY(server);
    for (n = 1; n <= messages; ++n) {
      Target target = {0, 0};
      Reached reached;
      while (servo_server_take(&server, &target, NULL) != LATENZ_ICC_OK) {
      }
      require(target.cycle == n);
      reached.angle = target.angle;
      reached.cycle = n + 1u;
      if (n % 2u == 0) {
        *servo_server_loan_reply(&server) = reached;
        servo_server_publish_reply(&server);
      } else {
        require(servo_server_answer(&server, &reached) == LATENZ_ICC_OK);
      }
    }
  }
}

static void trace(void* memory, size_t size, bool first) {
  uint32_t n = 1;
  if (first) {
    trace_writer writer;
    if (!trace_writer_create(&writer, memory, size, "trace", &problem)) exit(2);
    GET_READY(writer);
    while (LATENZ_ICC_LOAD_ACQUIRE(licc_at(writer.state.endpoint.sides, LICC_SIDE)) == 0)
      sched_yield();
    while (n <= messages) {
      State* place = n % 3u == 0 ? trace_writer_try_loan(&writer) : NULL;
      State two[2];
      uint32_t count = messages - n < 2u ? 1u : 2u;
      if (n % 6u == 1u && trace_writer_loan(&writer, &place, NULL) != LATENZ_ICC_OK) continue;
      if (place != NULL) {
        *place = state_of(n++);
        trace_writer_publish(&writer);
        continue;
      }
      two[0] = state_of(n);
      two[1] = state_of(n + 1u);
      if (trace_writer_try_write_some(&writer, two, &count) == LATENZ_ICC_OK) {
        n += count;
      } else {
        sched_yield();
      }
    }
  } else {
    trace_reader reader;
    while (!trace_reader_attach(&reader, memory, size, 0, &problem)) sched_yield();
    GET_READY(reader);
    while (n <= messages) {
      State got[3];
      uint32_t count = 3;
      uint32_t i;
      if (n % 4u == 0) {
        const State* place;
        if ((n % 8u == 0 ? trace_reader_take(&reader, &place, NULL)
                         : trace_reader_try_take(&reader, &place)) == LATENZ_ICC_OK) {
          check_state(place);
          require(place->time_ns == n++);
          require(trace_reader_release(&reader) == LATENZ_ICC_OK);
        }
        continue;
      }
      if (trace_reader_try_read_some(&reader, got, &count) != LATENZ_ICC_OK) {
        count = 0;
        sched_yield();
      }
      for (i = 0; i < count; ++i, ++n) {
        check_state(&got[i]);
        require(got[i].time_ns == n);
      }
    }
  }
}

static void state(void* memory, size_t size, bool first) {
  uint32_t n;
  if (first) {
    state_writer writer;
    if (!state_writer_create(&writer, memory, size, "state", &problem)) exit(2);
    GET_READY(writer);
    for (n = 1; n <= messages; ++n) {
      const State value = state_of(n);
      state_writer_update(&writer, &value);
    }
  } else {
    state_reader reader;
    State got = state_of(0);
    uint64_t last = 0;
    while (!state_reader_attach(&reader, memory, size, 1, &problem)) sched_yield();
    GET_READY(reader);
    while (got.time_ns < messages) {
      if (state_reader_poll(&reader, &got) == LATENZ_ICC_UPDATED) {
        check_state(&got);
        require(got.time_ns > last);
        last = got.time_ns;
      } else {
        sched_yield();
      }
    }
  }
}

#ifdef TORTURE_ON_BOARD
int main(void) {
  static void (*const channels[])(void*, size_t, bool) = {command, servo, state, trace};
  unsigned char* memory = (unsigned char*)LATENZ_BOARD_MEMORY;
  char line[] = "  wrong way 0";
  unsigned way;
  unsigned each;
  messages = TORTURE_MESSAGES;
  for (way = 0; way < 2u; ++way, memory += LATENZ_BOARD_BYTES / 2) {
    for (each = 0; each < 4u; ++each) {
      channels[each](memory + each * 0x1000u, LATENZ_BOARD_BYTES / 2 - each * 0x1000u, way != 0);
    }
    line[0] = (char)(errors < 10u ? '0' + errors : '+');
    line[sizeof line - 2u] = (char)('0' + way);
    latenz_board_print(line);
  }
  return errors == 0 ? 0 : 1;
}
#else
int main(int argc, char** argv) {
  int file;
  void* memory;
  const size_t size = 65536;
  const bool first = argc == 5 && strcmp(argv[2], "first") == 0;
  if (argc != 5 || (file = open(argv[3], O_RDWR)) < 0) return 2;
#ifdef SLEEPS_BY_FD
  if (first) { /* who creates them sends them */
    if (!latenz_icc_eventfds_create(&bells, 2)) return 3;
    if (!latenz_icc_eventfds_send(&bells, 0)) return 4;
  } else if (!latenz_icc_eventfds_receive(&bells, 2, 0)) {
    return 5;
  }
#endif
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 2;
  messages = (uint32_t)strtoul(argv[4], NULL, 10);
  if (strcmp(argv[1], "command") == 0) command(memory, size, first);
  if (strcmp(argv[1], "servo") == 0) servo(memory, size, first);
  if (strcmp(argv[1], "trace") == 0) trace(memory, size, first);
  if (strcmp(argv[1], "state") == 0) state(memory, size, first);
  printf("%u errors\n", (unsigned)errors);
  return errors == 0 ? 0 : 1;
}
#endif
