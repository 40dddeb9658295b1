/* SPDX-License-Identifier: Apache-2.0
 *
 * The channels of latenz::icc for C99: the same memory (docs/icc-abi.md), so each side of a channel
 * may be in either language. Freestanding: no heap, no library but memcpy; 32-bit loads, stores and
 * fences are all it needs of a processor.
 *
 * Payloads are described by tables, which `latenz icc generate` writes together with functions of
 * the payloads' own types: programs include what it generates, and use those.
 *
 * What a channel runs on is chosen by macros, defined before this header is included:
 *   LATENZ_ICC_ZYNQMP    memory of a Zynq UltraScale+ that takes whole aligned words, and barriers
 *                        for the whole system (`dmb sy`); otherwise coherent memory and the
 *                        compiler's fences
 *   LATENZ_ICC_PAUSE()   what a waiting side does between two looks
 *   LATENZ_ICC_NOTIFY()  what follows a store that the other side may be waiting for
 * or, for a side that sleeps (latenz/icc_linux_wait.h defines both for Linux),
 *   LATENZ_ICC_SLEEP(word, value, longest_ns)
 *                        sleeps while `*word` is `value`, until it is woken, at most so long; may
 *                        return early
 *   LATENZ_ICC_WAKE(word)
 *                        wakes all who sleep on this word
 *   LATENZ_ICC_LONGEST_SLEEP_NS
 *                        nobody sleeps longer without a look: 10,000,000 (10 ms)
 * or, if each side has a bell of its own, outside the memory, which stays rung until it is silenced
 * (latenz/icc_linux_eventfd.h defines them for Linux),
 *   LATENZ_ICC_BELLS     a pointer to those of all sides, which `latenz_icc_use_bells` gives to
 *                        each endpoint; null until then: nobody hears, and nobody is heard
 *   LATENZ_ICC_BELL_COUNT(bells)
 *                        how many there are
 *   LATENZ_ICC_BELL_FD(bells, side)
 *                        what a loop waits for
 *   LATENZ_ICC_SILENCE_BELL(bells, side), LATENZ_ICC_RING_BELL(bells, side)
 *   LATENZ_ICC_AWAIT_BELL(bells, side, longest_ns)
 * and, for others than gcc and clang, LATENZ_ICC_LOAD_RELAXED and its like below.
 *
 * Every endpoint is for one thread. Nothing here blocks unless it takes a deadline. */
#ifndef LATENZ_ICC_H
#define LATENZ_ICC_H

/* NOLINTBEGIN: this is C99, which clang-tidy reads as C++ where C++ includes it */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what it runs on ---- */

#ifndef LATENZ_ICC_LOAD_RELAXED
#ifdef LATENZ_ICC_ZYNQMP
#define LATENZ_ICC_ACQUIRE_FENCE() __asm__ volatile("dmb sy" ::: "memory")
#define LATENZ_ICC_RELEASE_FENCE() __asm__ volatile("dmb sy" ::: "memory")
#define LATENZ_ICC_FULL_FENCE() __asm__ volatile("dmb sy" ::: "memory")
#define LATENZ_ICC_LOAD_RELAXED(word) (*(volatile uint32_t*)(word))
#define LATENZ_ICC_STORE_RELAXED(word, value) ((void)(*(volatile uint32_t*)(word) = (value)))
#define LATENZ_ICC_LOAD_ACQUIRE(word) licc_load_acquire(word)
#define LATENZ_ICC_STORE_RELEASE(word, value) \
  (LATENZ_ICC_RELEASE_FENCE_STATEMENT, LATENZ_ICC_STORE_RELAXED(word, value))
#define LATENZ_ICC_RELEASE_FENCE_STATEMENT licc_release_fence()
static inline void licc_release_fence(void) { LATENZ_ICC_RELEASE_FENCE(); }
static inline uint32_t licc_load_acquire(uint32_t* word) {
  const uint32_t value = LATENZ_ICC_LOAD_RELAXED(word);
  LATENZ_ICC_ACQUIRE_FENCE();
  return value;
}
#else
#define LATENZ_ICC_LOAD_RELAXED(word) __atomic_load_n((word), __ATOMIC_RELAXED)
#define LATENZ_ICC_LOAD_ACQUIRE(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
#define LATENZ_ICC_STORE_RELAXED(word, value) __atomic_store_n((word), (value), __ATOMIC_RELAXED)
#define LATENZ_ICC_STORE_RELEASE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE)
#define LATENZ_ICC_ACQUIRE_FENCE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define LATENZ_ICC_RELEASE_FENCE() __atomic_thread_fence(__ATOMIC_RELEASE)
#define LATENZ_ICC_FULL_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#endif

/* How payloads are moved into shared memory and out of it. */
#ifndef LATENZ_ICC_WRITE
#ifdef LATENZ_ICC_ZYNQMP
#define LATENZ_ICC_WRITE(shared, own, bytes) licc_write_words((shared), (own), (bytes))
#define LATENZ_ICC_READ(own, shared, bytes) licc_read_words((own), (shared), (bytes))
static inline void licc_write_words(void* shared, const void* own, size_t bytes) {
  volatile uint32_t* to = (volatile uint32_t*)shared;
  const unsigned char* from = (const unsigned char*)own;
  for (; bytes != 0; ++to) {
    const size_t part = bytes < sizeof(uint32_t) ? bytes : sizeof(uint32_t);
    uint32_t word = 0;
    memcpy(&word, from, part);
    *to = word;
    from += part;
    bytes -= part;
  }
}
static inline void licc_read_words(void* own, const void* shared, size_t bytes) {
  const volatile uint32_t* from = (const volatile uint32_t*)shared;
  unsigned char* to = (unsigned char*)own;
  for (; bytes != 0; ++from) {
    const size_t part = bytes < sizeof(uint32_t) ? bytes : sizeof(uint32_t);
    const uint32_t word = *from;
    memcpy(to, &word, part);
    to += part;
    bytes -= part;
  }
}
#else
#define LATENZ_ICC_WRITE(shared, own, bytes) memcpy((shared), (own), (bytes))
#define LATENZ_ICC_READ(own, shared, bytes) memcpy((own), (shared), (bytes))
#endif
#endif

#ifndef LATENZ_ICC_PAUSE
#if defined(__x86_64__) || defined(__i386__)
#define LATENZ_ICC_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__) || defined(__arm__)
#define LATENZ_ICC_PAUSE() __asm__ volatile("yield" ::: "memory")
#else
#define LATENZ_ICC_PAUSE() ((void)0)
#endif
#endif
#ifndef LATENZ_ICC_NOTIFY
#define LATENZ_ICC_NOTIFY() ((void)0)
#endif
#if defined(LATENZ_ICC_SLEEP) || defined(LATENZ_ICC_BELLS)
#define LICC_SLEEPS
#if defined(LATENZ_ICC_SLEEP) && !defined(LATENZ_ICC_WAKE)
#error "a side that sleeps wakes others too: define LATENZ_ICC_WAKE"
#endif
#ifndef LATENZ_ICC_LONGEST_SLEEP_NS
#define LATENZ_ICC_LONGEST_SLEEP_NS 10000000
#endif
#if LATENZ_ICC_LONGEST_SLEEP_NS < 1000 || LATENZ_ICC_LONGEST_SLEEP_NS > 1000000000
#error "a sleep takes microseconds, and a sign of life is given each second"
#endif
#ifndef LATENZ_ICC_LOOKS_PER_CHECK
#define LATENZ_ICC_LOOKS_PER_CHECK 1u
#endif
#ifndef LATENZ_ICC_CHECKS_PER_BEAT
#define LATENZ_ICC_CHECKS_PER_BEAT 1u
#endif
#ifndef LATENZ_ICC_SILENT_BEATS
#define LATENZ_ICC_SILENT_BEATS ((uint32_t)(5000000000 / LATENZ_ICC_LONGEST_SLEEP_NS))
#endif
#endif
/* Looks between two checks of the deadline; such checks between two signs of life; and signs of
 * life looked for in vain after which a call without deadline ends. */
#ifndef LATENZ_ICC_LOOKS_PER_CHECK
#define LATENZ_ICC_LOOKS_PER_CHECK 64u
#endif
#ifndef LATENZ_ICC_CHECKS_PER_BEAT
#define LATENZ_ICC_CHECKS_PER_BEAT 16u
#endif
#ifndef LATENZ_ICC_SILENT_BEATS
#define LATENZ_ICC_SILENT_BEATS (1u << 17)
#endif

/* ---- results and problems ---- */

/* How a call ended; as latenz::icc::Result. */
typedef enum {
  LATENZ_ICC_OK,
  LATENZ_ICC_TIMEOUT,   /* the deadline passed */
  LATENZ_ICC_PEER_GONE, /* the peer left; or, without deadline, gave no sign of life for long */
  LATENZ_ICC_PEER_RESTARTED, /* the peer began anew; nothing was delivered; call again */
  LATENZ_ICC_EMPTY,          /* `try_`: nothing is there */
  LATENZ_ICC_FULL,           /* `try_`: what was written before is not taken yet */
  LATENZ_ICC_BUSY,           /* the writer overtook every try, or has left this reader behind */
  LATENZ_ICC_LAYOUT_CHANGED  /* the channel was formatted anew: attach again */
} latenz_icc_result;

static inline const char* latenz_icc_name_of(latenz_icc_result result) {
  static const char* const names[] = {"ok",    "timeout", "peer gone", "peer restarted",
                                      "empty", "full",    "busy",      "layout changed"};
  return (unsigned)result < 8u ? names[(unsigned)result] : "unknown";
}

/* A leaf of a payload as it is stored in shared memory. `kind`: 1 unsigned, 2 signed, 3 floating
 * point, 4 bytes. */
typedef struct {
  uint32_t offset;
  uint16_t size;
  uint8_t kind;
  uint8_t reserved;
  uint32_t count;
  uint32_t stride;
  char name[16];
} latenz_icc_field;

/* A payload: generated, not written by hand. */
typedef struct {
  uint32_t bytes;
  uint32_t field_count;
  uint64_t fingerprint;
  const latenz_icc_field* fields;
} latenz_icc_type;

typedef enum {
  LATENZ_ICC_NO_FLAW,
  LATENZ_ICC_NO_MEMORY, /* null, not at a line of 64 bytes, or fewer bytes than needed */
  LATENZ_ICC_NOT_READY, /* no channel is there (yet) */
  LATENZ_ICC_ABI_VERSION,
  LATENZ_ICC_LINE,
  LATENZ_ICC_KIND,
  LATENZ_ICC_FIELD,
  LATENZ_ICC_FIELD_COUNT,
  LATENZ_ICC_PAYLOAD_BYTES,
  LATENZ_ICC_FINGERPRINT,
  LATENZ_ICC_READERS,
  LATENZ_ICC_SLOTS,
  LATENZ_ICC_CHANNEL_BYTES,
  LATENZ_ICC_READER
} latenz_icc_flaw;

/* Why a channel could not be opened: `here` is this side's value, `there` the one in memory. */
typedef struct {
  latenz_icc_flaw flaw;
  uint32_t payload; /* 0: payload or request, 1: reply */
  uint32_t here;
  uint32_t there;
  latenz_icc_field field;
  latenz_icc_field peer_field;
} latenz_icc_problem;

/* A deadline: `expired(context)` is asked once in LATENZ_ICC_LOOKS_PER_CHECK looks; a null pointer
 * to one is none: the call ends when it is done, or the peer is gone. `left_ns(context)`, if not
 * null, tells a side that sleeps the nanoseconds until then, so that it is not overslept. */
typedef struct {
  bool (*expired)(void* context);
  void* context;
  int64_t (*left_ns)(void* context);
} latenz_icc_deadline;

typedef struct {
  uint32_t left;
} latenz_icc_checks;

static inline bool licc_checks_expired(void* context) {
  latenz_icc_checks* checks = (latenz_icc_checks*)context;
  if (checks->left == 0) return true;
  --checks->left;
  return false;
}
/* After so many checks, for programs without a clock. */
static inline latenz_icc_deadline latenz_icc_after_checks(latenz_icc_checks* checks) {
  latenz_icc_deadline deadline;
  deadline.expired = licc_checks_expired;
  deadline.context = checks;
  deadline.left_ns = NULL;
  return deadline;
}

/* Builds a line of text in the caller's memory. */
typedef struct {
  char* text;
  size_t bytes;
  size_t length;
} licc_line;

static inline void licc_put(licc_line* line, const char* part) {
  for (; *part != '\0'; ++part) {
    if (line->length + 1 < line->bytes) line->text[line->length++] = *part;
  }
}
static inline void licc_put_number(licc_line* line, uint32_t number) {
  char digits[11];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do {
    digits[--at] = (char)('0' + number % 10u);
    number /= 10u;
  } while (number != 0);
  licc_put(line, digits + at);
}
static inline void licc_put_field(licc_line* line, const latenz_icc_field* field) {
  static const char* const kinds[] = {"none", "uint", "int", "float", "byte"};
  char name[sizeof field->name + 1];
  if (field->count == 0) {
    licc_put(line, "nothing");
    return;
  }
  licc_put(line, field->kind < 5u ? kinds[field->kind] : "unknown");
  licc_put_number(line, field->size * 8u);
  if (field->count != 1) {
    licc_put(line, "[");
    licc_put_number(line, field->count);
    licc_put(line, "] every ");
    licc_put_number(line, field->stride);
    licc_put(line, " bytes");
  }
  memcpy(name, field->name, sizeof field->name);
  name[sizeof field->name] = '\0';
  licc_put(line, " '");
  licc_put(line, name);
  licc_put(line, "' at ");
  licc_put_number(line, field->offset);
}

/* Writes one line that says what is wrong, ended by 0, cut off at `bytes`; returns its length. */
static inline size_t latenz_icc_describe(const latenz_icc_problem* problem, char* text,
                                         size_t bytes) {
  static const char* const subjects[] = {"",
                                         "",
                                         "",
                                         "ABI version",
                                         "bytes of a line",
                                         "kind of channel",
                                         "",
                                         "number of fields",
                                         "size of the payload",
                                         "",
                                         "number of readers",
                                         "number of slots",
                                         "size of the channel",
                                         ""};
  licc_line line = {text, bytes, 0};
  switch (problem->flaw) {
    case LATENZ_ICC_NO_FLAW:
      licc_put(&line, "no problem");
      break;
    case LATENZ_ICC_NO_MEMORY:
      licc_put(&line, "memory must begin at a line of 64 bytes and have ");
      licc_put_number(&line, problem->here);
      licc_put(&line, " bytes, not ");
      licc_put_number(&line, problem->there);
      break;
    case LATENZ_ICC_NOT_READY:
      licc_put(&line, "no channel is there: its creator has not formatted it");
      break;
    case LATENZ_ICC_FIELD:
      licc_put(&line, problem->payload == 0 ? "payload differs: here " : "reply differs: here ");
      licc_put_field(&line, &problem->field);
      licc_put(&line, ", in memory ");
      licc_put_field(&line, &problem->peer_field);
      break;
    case LATENZ_ICC_FINGERPRINT:
      licc_put(&line, problem->payload == 0 ? "payload" : "reply");
      licc_put(&line, " differs in names of fields after their 15th letter");
      break;
    case LATENZ_ICC_READER:
      licc_put(&line, "the channel has ");
      licc_put_number(&line, problem->there);
      licc_put(&line, " readers, numbered from 0: none is ");
      licc_put_number(&line, problem->here);
      break;
    default:
      licc_put(&line, subjects[problem->flaw]);
      licc_put(&line, " differs: here ");
      licc_put_number(&line, problem->here);
      licc_put(&line, ", in memory ");
      licc_put_number(&line, problem->there);
  }
  if (bytes != 0) text[line.length] = '\0';
  return line.length;
}

/* ---- lists and text in a payload, as latenz::icc::FixedVector and FixedString ---- */

/* Elements or bytes that are there: `LATENZ_ICC_SIZE(plan.joints)`. The count is read once, and one
 * that does not fit is of damaged memory or a peer that errs: then nothing is there. */
#define LATENZ_ICC_SIZE(list) licc_list_size(&(list).count, LATENZ_ICC_CAPACITY(list))
#define LATENZ_ICC_CAPACITY(list) ((uint32_t)(sizeof(list).items / sizeof(list).items[0]))
/* Puts a text, which ends at a 0, into one: false if it is too long; then nothing has changed. */
#define LATENZ_ICC_SET_TEXT(list, text) \
  licc_set_text(&(list).count, (list).items, LATENZ_ICC_CAPACITY(list), (text))

static inline uint32_t licc_list_size(const uint32_t* count, uint32_t capacity) {
  const uint32_t read = *(const volatile uint32_t*)count;
  return read <= capacity ? read : 0u;
}
static inline bool licc_set_text(uint32_t* count, char* items, uint32_t capacity,
                                 const char* text) {
  uint32_t length = 0;
  while (length <= capacity && text[length] != '\0') ++length;
  if (length > capacity) return false;
  memcpy(items, text, length);
  *count = length;
  return true;
}

/* ---- the part that all channels have in common ---- */

enum {
  LICC_LINE = 64,
  LICC_ABI = 3,
  LICC_MAGIC = 0x4343494C,
  LICC_IDENTITY = 128,
  LICC_FIELD_BYTES = 32,
  LICC_SIDE = 128,
  LICC_MAX_FIELDS = 256,
  /* offsets in the identity */
  LICC_AT_ABI = 4,
  LICC_AT_KIND = 8,
  LICC_AT_GENERATION = 12,
  LICC_AT_BYTES = 16,
  LICC_AT_LINE = 20,
  LICC_AT_READERS = 24,
  LICC_AT_SLOTS = 28,
  LICC_AT_PAYLOAD = 32,
  LICC_AT_COUNT = 40,
  LICC_AT_FINGERPRINT = 48,
  LICC_AT_NAME = 64,
  /* offsets in a side */
  LICC_OPEN = 4,
  LICC_DROPPED = 8,
  LICC_BEATS = 64,
  LICC_ASLEEP = 68,
  LICC_RINGS = 72,
  LICC_COUNT_MASK = 0x00FFFFFF
};
enum { LICC_MAILBOX = 1, LICC_EXCHANGE = 2, LICC_LATEST = 3, LICC_RING = 4, LICC_POOL = 5 };

/* What both sides must agree on. */
typedef struct {
  uint32_t kind;
  uint32_t readers;
  uint32_t slots;
  uint32_t bytes; /* of the channel */
  uint32_t data;  /* offset of what is behind the sides */
  const latenz_icc_type* payload;
  const latenz_icc_type* reply; /* of an exchange; otherwise null */
  uint32_t longest;             /* bytes of the longest message of a pool; otherwise 0 */
} latenz_icc_shape;

typedef struct {
  unsigned char* side;
  uint32_t epoch;
} licc_peer;

/* One side of a channel; what its first member shows may be read: `dropped` messages, `epoch`. */
typedef struct {
  unsigned char* memory;
  unsigned char* sides; /* the first one: it and the others wait for each other */
  unsigned char* side;  /* this one */
  uint32_t readers;     /* sides besides the first */
  uint32_t generation;
  uint32_t epoch; /* which incarnation of this side this is, from 1 */
  uint32_t beats;
  uint32_t dropped; /* stale messages that this side has thrown away */
#ifdef LATENZ_ICC_BELLS
  LATENZ_ICC_BELLS bells;
#endif
} latenz_icc_endpoint;

static inline uint32_t* licc_at(unsigned char* memory, size_t offset) {
  return (uint32_t*)(void*)(memory + offset);
}
static inline uint32_t licc_lines(uint32_t bytes) { return (bytes + 63u) / 64u * 64u; }
static inline uint32_t licc_pairs(uint32_t bytes) { return (bytes + 127u) / 128u * 128u; }
static inline uint32_t licc_words(uint32_t bytes) { return (bytes + 3u) / 4u * 4u; }

static inline uint32_t licc_fields(const latenz_icc_shape* shape) {
  return shape->payload->field_count + (shape->reply != NULL ? shape->reply->field_count : 0u);
}
static inline uint32_t licc_sides(const latenz_icc_shape* shape) {
  return licc_pairs(LICC_IDENTITY + licc_fields(shape) * LICC_FIELD_BYTES);
}
static inline latenz_icc_shape licc_shape(uint32_t kind, const latenz_icc_type* payload,
                                          const latenz_icc_type* reply, uint32_t readers,
                                          uint32_t slots) {
  latenz_icc_shape shape;
  shape.kind = kind;
  shape.readers = readers;
  shape.slots = slots;
  shape.payload = payload;
  shape.reply = reply;
  shape.longest = 0;
  shape.data = licc_sides(&shape) + (1u + readers) * LICC_SIDE;
  shape.bytes = shape.data;
  return shape;
}

static inline void licc_format(unsigned char* memory, const latenz_icc_shape* shape,
                               const char* name) {
  const latenz_icc_type* const payloads[2] = {shape->payload, shape->reply};
  const uint32_t generation = LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_GENERATION)) + 1u;
  uint32_t offset;
  uint32_t field = 0;
  unsigned which;
  char padded[32] = {0};
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, 0), 0u);
  LATENZ_ICC_FULL_FENCE();
  for (offset = 4; offset < shape->bytes; offset += 4u) {
    LATENZ_ICC_STORE_RELAXED(licc_at(memory, offset), 0u);
  }
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_ABI), (uint32_t)LICC_ABI);
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_KIND), shape->kind);
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_GENERATION), generation);
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_BYTES), shape->bytes);
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_LINE), (uint32_t)LICC_LINE);
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_READERS), shape->readers);
  LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_SLOTS), shape->slots);
  for (which = 0; which < 2u && payloads[which] != NULL; ++which) {
    const latenz_icc_type* type = payloads[which];
    uint32_t i;
    LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_PAYLOAD + 4u * which), type->bytes);
    LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_COUNT + 4u * which), type->field_count);
    LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_FINGERPRINT + 8u * which),
                             (uint32_t)type->fingerprint);
    LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_FINGERPRINT + 4u + 8u * which),
                             (uint32_t)(type->fingerprint >> 32));
    for (i = 0; i < type->field_count; ++i, ++field) {
      LATENZ_ICC_WRITE(memory + LICC_IDENTITY + field * LICC_FIELD_BYTES, &type->fields[i],
                       sizeof type->fields[i]);
    }
  }
  if (shape->longest != 0) {
    LATENZ_ICC_STORE_RELAXED(licc_at(memory, LICC_AT_PAYLOAD + 4u), shape->longest);
  }
  for (offset = 0; offset + 1u < sizeof padded && name[offset] != '\0'; ++offset) {
    padded[offset] = name[offset];
  }
  LATENZ_ICC_WRITE(memory + LICC_AT_NAME, padded, sizeof padded);
  LATENZ_ICC_STORE_RELEASE(licc_at(memory, 0), (uint32_t)LICC_MAGIC);
}

static inline bool licc_differs(latenz_icc_problem* problem, latenz_icc_flaw flaw, uint32_t here,
                                uint32_t there) {
  if (here == there) return false;
  problem->flaw = flaw;
  problem->here = here;
  problem->there = there;
  return true;
}

/* Compares a payload's fields with those in memory, `first` being the first of them there. */
static inline bool licc_payload_differs(latenz_icc_problem* problem, unsigned char* memory,
                                        size_t size, const latenz_icc_type* type, uint32_t bytes,
                                        uint32_t which, uint32_t first) {
  const uint32_t here = type != NULL ? type->field_count : 0u;
  const uint32_t there = LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_COUNT + 4u * which));
  const uint64_t fingerprint = type != NULL ? type->fingerprint : 0u;
  uint32_t i;
  uint32_t low;
  uint32_t high;
  problem->payload = which;
  for (i = 0; i < here || i < there; ++i) {
    latenz_icc_field own;
    latenz_icc_field found;
    memset(&own, 0, sizeof own);
    memset(&found, 0, sizeof found);
    if (i >= LICC_MAX_FIELDS ||
        LICC_IDENTITY + ((size_t)first + i + 1u) * LICC_FIELD_BYTES > size) {
      problem->flaw = LATENZ_ICC_FIELD_COUNT;
      problem->here = here;
      problem->there = there;
      return true;
    }
    if (i < here) own = type->fields[i];
    if (i < there) {
      LATENZ_ICC_READ(&found, memory + LICC_IDENTITY + (size_t)(first + i) * LICC_FIELD_BYTES,
                      sizeof found);
    }
    if (memcmp(&own, &found, sizeof own) != 0) {
      problem->flaw = LATENZ_ICC_FIELD;
      problem->field = own;
      problem->peer_field = found;
      return true;
    }
  }
  if (licc_differs(problem, LATENZ_ICC_PAYLOAD_BYTES, bytes,
                   LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_PAYLOAD + 4u * which)))) {
    return true;
  }
  low = LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_FINGERPRINT + 8u * which));
  high = LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_FINGERPRINT + 4u + 8u * which));
  if (low != (uint32_t)fingerprint || high != (uint32_t)(fingerprint >> 32)) {
    problem->flaw = LATENZ_ICC_FINGERPRINT;
    return true;
  }
  return false;
}

/* Compares a channel in memory with what this side was compiled for; trusts nothing there. */
static inline bool licc_unlike(latenz_icc_problem* problem, unsigned char* memory, size_t size,
                               const latenz_icc_shape* shape) {
  const latenz_icc_type* const payloads[2] = {shape->payload, shape->reply};
  uint32_t which;
  uint32_t first = 0;
  if (LATENZ_ICC_LOAD_ACQUIRE(licc_at(memory, 0)) != (uint32_t)LICC_MAGIC) {
    problem->flaw = LATENZ_ICC_NOT_READY;
    return true;
  }
  if (licc_differs(problem, LATENZ_ICC_ABI_VERSION, LICC_ABI,
                   LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_ABI))) ||
      licc_differs(problem, LATENZ_ICC_LINE, LICC_LINE,
                   LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_LINE))) ||
      licc_differs(problem, LATENZ_ICC_KIND, shape->kind,
                   LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_KIND)))) {
    return true;
  }
  for (which = 0; which < 2u; ++which) {
    const latenz_icc_type* const type = payloads[which];
    const uint32_t bytes = type != NULL ? type->bytes : shape->longest;
    if (licc_payload_differs(problem, memory, size, type, bytes, which, first)) return true;
    first += LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_COUNT + 4u * which));
  }
  problem->payload = 0;
  return licc_differs(problem, LATENZ_ICC_READERS, shape->readers,
                      LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_READERS))) ||
         licc_differs(problem, LATENZ_ICC_SLOTS, shape->slots,
                      LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_SLOTS))) ||
         licc_differs(problem, LATENZ_ICC_CHANNEL_BYTES, shape->bytes,
                      LATENZ_ICC_LOAD_RELAXED(licc_at(memory, LICC_AT_BYTES)));
}

/* Formats the memory if `name` is given and no such channel is there, or compares it; whether this
 * side may be opened. */
static inline bool licc_ready(latenz_icc_problem* problem, void* memory, size_t size,
                              const latenz_icc_shape* shape, const char* name, uint32_t reader) {
  latenz_icc_problem ignored;
  memset(problem, 0, sizeof *problem);
  if (memory == NULL || (uintptr_t)memory % LICC_LINE != 0 || size < shape->bytes) {
    problem->flaw = LATENZ_ICC_NO_MEMORY;
    problem->here = shape->bytes;
    problem->there = (uint32_t)size;
    return false;
  }
  if (reader != 0 && reader >= shape->readers) {
    problem->flaw = LATENZ_ICC_READER;
    problem->here = reader;
    problem->there = shape->readers;
    return false;
  }
  if (name == NULL) return !licc_unlike(problem, (unsigned char*)memory, size, shape);
  memset(&ignored, 0, sizeof ignored);
  if (licc_unlike(&ignored, (unsigned char*)memory, size, shape)) {
    licc_format((unsigned char*)memory, shape, name);
  }
  return true;
}

/* Messages carry the low byte of their sender's epoch; 0 there means never. */
static inline uint32_t licc_following(uint32_t epoch) {
  ++epoch;
  return (epoch & 0xFFu) == 0 ? epoch + 1u : epoch;
}

/* Which of the channel's sides this one is; 0 is the one that writes, or the client. */
static inline uint32_t licc_number_of(const latenz_icc_endpoint* self) {
  return (uint32_t)((self->side - self->sides) / LICC_SIDE);
}

static inline void licc_open(latenz_icc_endpoint* self, void* memory, const latenz_icc_shape* shape,
                             uint32_t side) {
  self->memory = (unsigned char*)memory;
  self->sides = self->memory + licc_sides(shape);
  self->side = self->sides + side * LICC_SIDE;
  self->readers = shape->readers;
  self->generation = LATENZ_ICC_LOAD_RELAXED(licc_at(self->memory, LICC_AT_GENERATION));
  self->epoch = licc_following(LATENZ_ICC_LOAD_RELAXED(licc_at(self->side, 0)));
  self->beats = LATENZ_ICC_LOAD_RELAXED(licc_at(self->side, LICC_BEATS));
  self->dropped = LATENZ_ICC_LOAD_RELAXED(licc_at(self->side, LICC_DROPPED));
#ifdef LATENZ_ICC_BELLS
  self->bells = NULL;
#endif
}

#ifdef LICC_SLEEPS
/* Rings for `side`, if it is asleep; whether all who sleep have been woken. */
static inline bool licc_ring_for(latenz_icc_endpoint* self, unsigned char* side, bool* counted) {
  uint32_t* const rings = licc_at(self->side, LICC_RINGS);
  if (LATENZ_ICC_LOAD_RELAXED(licc_at(side, LICC_ASLEEP)) == 0) return false;
  if (!*counted) LATENZ_ICC_STORE_RELAXED(rings, LATENZ_ICC_LOAD_RELAXED(rings) + 1u);
  *counted = true;
#ifdef LATENZ_ICC_BELLS
  if (self->bells != NULL) {
    LATENZ_ICC_RING_BELL(self->bells, (uint32_t)((side - self->sides) / LICC_SIDE));
  }
  return false;
#else
  LATENZ_ICC_WAKE(rings); /* all of them sleep on this word */
  return true;
#endif
}
#endif

/* Follows each store that another side may be waiting for: wakes those who sleep. Of the fence here
 * and the one of `licc_tell_asleep`, one comes first: either a sleeper sees that store at its last
 * look, or it is seen here to be asleep. */
static inline void licc_notify(latenz_icc_endpoint* self) {
#ifdef LICC_SLEEPS
  bool counted = false;
  unsigned char* side = self->sides;
  unsigned char* end = side + LICC_SIDE;
  if (self->side == self->sides) {
    side = end;
    end += self->readers * LICC_SIDE;
  }
  if (self->readers == 0) return;
  LATENZ_ICC_FULL_FENCE();
  while (side != end && !licc_ring_for(self, side, &counted)) side += LICC_SIDE;
#else
  (void)self;
  LATENZ_ICC_NOTIFY();
#endif
}

/* Shows this incarnation to the other side; the last step of attaching. */
static inline void licc_enter(latenz_icc_endpoint* self) {
#ifdef LICC_SLEEPS
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_ASLEEP), 0u); /* an earlier one died asleep */
#endif
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_OPEN), 1u);
  LATENZ_ICC_STORE_RELEASE(licc_at(self->side, 0), self->epoch);
  licc_notify(self);
}

/* Tells the other side that this one is alive; wait-free. Waiting calls do so by themselves. */
static inline void latenz_icc_beat(latenz_icc_endpoint* self) {
  ++self->beats;
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_BEATS), self->beats);
}

/* Leaves: the other side's calls answer `peer gone` from now on. Wait-free. */
static inline void latenz_icc_close(latenz_icc_endpoint* self) {
  LATENZ_ICC_STORE_RELEASE(licc_at(self->side, LICC_OPEN), 0u);
  licc_notify(self);
}

static inline bool licc_formatted_anew(const latenz_icc_endpoint* self) {
  return LATENZ_ICC_LOAD_RELAXED(licc_at(self->memory, LICC_AT_GENERATION)) != self->generation;
}
static inline latenz_icc_result licc_not_yet(const latenz_icc_endpoint* self,
                                             latenz_icc_result usual) {
  return licc_formatted_anew(self) ? LATENZ_ICC_LAYOUT_CHANGED : usual;
}
static inline void licc_count_dropped(latenz_icc_endpoint* self, uint32_t messages) {
  self->dropped += messages;
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_DROPPED), self->dropped);
}

static inline uint32_t licc_peer_epoch(const licc_peer* peer) {
  return LATENZ_ICC_LOAD_ACQUIRE(licc_at(peer->side, 0));
}
/* Not so: it has left, and what it wrote before is there. */
static inline bool licc_is_open(const licc_peer* peer) {
  return LATENZ_ICC_LOAD_ACQUIRE(licc_at(peer->side, LICC_OPEN)) != 0;
}
static inline licc_peer licc_peer_of(unsigned char* side) {
  licc_peer peer;
  peer.side = side;
  peer.epoch = LATENZ_ICC_LOAD_ACQUIRE(licc_at(side, 0));
  return peer;
}
static inline bool licc_turned_into(licc_peer* peer, uint32_t epoch) {
  const uint32_t before = peer->epoch;
  peer->epoch = epoch;
  return before != epoch && before != 0;
}
static inline bool licc_restarted(licc_peer* peer) {
  return licc_turned_into(peer, licc_peer_epoch(peer));
}

/* What has become of the peer. */
static inline latenz_icc_result licc_look_at(const latenz_icc_endpoint* self,
                                             const licc_peer* peer) {
  if (licc_formatted_anew(self)) return LATENZ_ICC_LAYOUT_CHANGED;
  if (peer->epoch == 0) return LATENZ_ICC_OK;
  if (licc_peer_epoch(peer) != peer->epoch) return LATENZ_ICC_PEER_RESTARTED;
  return licc_is_open(peer) ? LATENZ_ICC_OK : LATENZ_ICC_PEER_GONE;
}

/* What changes while the peer lives and waits. */
static inline uint32_t licc_signs_of_life(const licc_peer* peer) {
  const uint32_t beats = LATENZ_ICC_LOAD_RELAXED(licc_at(peer->side, LICC_BEATS));
#ifdef LICC_SLEEPS
  return beats + LATENZ_ICC_LOAD_RELAXED(licc_at(peer->side, LICC_RINGS));
#else
  return beats;
#endif
}

#ifdef LICC_SLEEPS
/* Tells that this side wants to be woken. What is looked at from here on is the last look: what
 * comes after it rings. */
static inline void licc_tell_asleep(latenz_icc_endpoint* self) {
#ifdef LATENZ_ICC_BELLS
  if (self->bells != NULL) { /* before this side is seen asleep: no ring meant for this sleep */
    LATENZ_ICC_SILENCE_BELL(self->bells, licc_number_of(self));
  }
#endif
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_ASLEEP), 1u);
  LATENZ_ICC_FULL_FENCE();
}
static inline int64_t licc_longest_sleep_ns(const latenz_icc_deadline* deadline) {
  int64_t longest_ns = LATENZ_ICC_LONGEST_SLEEP_NS;
  if (deadline != NULL && deadline->left_ns != NULL) {
    const int64_t left_ns = deadline->left_ns(deadline->context);
    if (left_ns < longest_ns) longest_ns = left_ns;
  }
  return longest_ns;
}
#endif

/* Between two looks. A side that sleeps does so until the peer rings, the deadline, or for the
 * longest sleep; not at all if the last look tells that there is nothing to wait for any more. */
static inline void licc_rest(latenz_icc_endpoint* self, const licc_peer* peer,
                             bool (*ready)(void* object), void* object,
                             const latenz_icc_deadline* deadline) {
#ifdef LICC_SLEEPS
#ifndef LATENZ_ICC_BELLS
  uint32_t* const bell = licc_at(peer->side, LICC_RINGS);
  const uint32_t rings =
      LATENZ_ICC_LOAD_RELAXED(bell); /* first: what rings later is meant for us */
#endif
  licc_tell_asleep(self);
  if (!ready(object) && licc_look_at(self, peer) == LATENZ_ICC_OK) {
    const int64_t longest_ns = licc_longest_sleep_ns(deadline);
    (void)longest_ns; /* a bell may take no time */
#ifdef LATENZ_ICC_BELLS
    LATENZ_ICC_AWAIT_BELL(self->bells, licc_number_of(self), longest_ns);
#else
    LATENZ_ICC_SLEEP(bell, rings, longest_ns);
#endif
  }
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_ASLEEP), 0u);
#else
  (void)self;
  (void)peer;
  (void)ready;
  (void)object;
  (void)deadline;
  LATENZ_ICC_PAUSE();
#endif
}

#ifdef LATENZ_ICC_BELLS
/* Gives this side the channel's bells, and rings for those who sleep already: first of all, since
 * until then it rings for nobody. They outlive it. False: they are not as many as the channel has
 * sides. Wait-free. */
static inline bool latenz_icc_use_bells(latenz_icc_endpoint* self, LATENZ_ICC_BELLS bells) {
  if (LATENZ_ICC_BELL_COUNT(bells) != 1u + self->readers) return false;
  self->bells = bells;
  licc_notify(self);
  return true;
}
/* What a loop of poll(2) or epoll(7) waits for, behind an `_arm`; -1 without bells. */
static inline int latenz_icc_fd(const latenz_icc_endpoint* self) {
  return self->bells == NULL ? -1 : LATENZ_ICC_BELL_FD(self->bells, licc_number_of(self));
}
/* For a loop that waits by itself: arm, check, wait. From here on all that a waiting call waits for
 * makes the descriptor readable, until the next `_arm`. `ok`: now check by a `_try` call, and wait
 * for the descriptor if it finds nothing. `peer gone`, `peer restarted`, `layout changed`: check,
 * but do not wait. Wait-free, with a system call. `peer`: null where nobody is waited for. */
static inline latenz_icc_result licc_arm(latenz_icc_endpoint* self, const licc_peer* peer) {
  licc_tell_asleep(self);
  return peer == NULL ? licc_not_yet(self, LATENZ_ICC_OK) : licc_look_at(self, peer);
}
/* Awake: nobody rings any more, which saves the others a system call with each write. Wait-free. */
static inline void latenz_icc_disarm(latenz_icc_endpoint* self) {
  LATENZ_ICC_STORE_RELAXED(licc_at(self->side, LICC_ASLEEP), 0u);
}
#endif

/* Looks until `ready(object)`, the deadline, or there is no such peer to wait for any more. */
static inline latenz_icc_result licc_wait(latenz_icc_endpoint* self, const licc_peer* peer,
                                          bool (*ready)(void* object), void* object,
                                          const latenz_icc_deadline* deadline) {
  uint32_t heard = 0;
  uint32_t silent_beats = 0;
  uint32_t check;
  for (check = 1;; ++check) {
    uint32_t look;
    bool late;
    for (look = 0; look < LATENZ_ICC_LOOKS_PER_CHECK; ++look) {
      if (ready(object)) return LATENZ_ICC_OK;
      licc_rest(self, peer, ready, object, deadline);
    }
    late = deadline != NULL && deadline->expired(deadline->context);
    if (late || check % LATENZ_ICC_CHECKS_PER_BEAT == 0) {
      latenz_icc_result result;
      latenz_icc_beat(self);
      result = licc_look_at(self, peer);
      if (late || result != LATENZ_ICC_OK) {
        return result == LATENZ_ICC_OK ? LATENZ_ICC_TIMEOUT : result;
      }
      if (deadline == NULL) {
        const uint32_t signs = licc_signs_of_life(peer);
        silent_beats = signs == heard ? silent_beats + 1u : 0u;
        heard = signs;
        if (silent_beats >= LATENZ_ICC_SILENT_BEATS) return LATENZ_ICC_PEER_GONE;
      }
    }
  }
}

/* ---- mailbox: each message is read before the next is written ---- */

typedef struct {
  latenz_icc_endpoint endpoint;
  licc_peer peer;
  unsigned char* payload;
  uint32_t* taken;
  uint32_t* written;
  uint32_t bytes;
  uint32_t count;
  uint32_t seen; /* of a reader: `written` at its last look */
  bool held;     /* the slot is lent, or taken */
} latenz_icc_mailbox;

static inline latenz_icc_shape latenz_icc_mailbox_shape(const latenz_icc_type* type) {
  latenz_icc_shape shape = licc_shape(LICC_MAILBOX, type, NULL, 1, 1);
  shape.bytes += licc_lines(type->bytes + 8u);
  return shape;
}
#ifdef LATENZ_ICC_BELLS
static inline latenz_icc_result latenz_icc_mailbox_arm(latenz_icc_mailbox* self) {
  return licc_arm(&self->endpoint, &self->peer);
}
#endif
static inline void licc_mailbox_open(latenz_icc_mailbox* self, void* memory,
                                     const latenz_icc_shape* shape, uint32_t side) {
  memset(self, 0, sizeof *self);
  licc_open(&self->endpoint, memory, shape, side);
  self->payload = self->endpoint.memory + shape->data;
  self->taken = licc_at(self->endpoint.memory, shape->bytes - 8u);
  self->written = licc_at(self->endpoint.memory, shape->bytes - 4u);
  self->bytes = shape->payload->bytes;
  self->peer = licc_peer_of(self->endpoint.memory + licc_sides(shape) + (1u - side) * LICC_SIDE);
}

static inline bool licc_mailbox_fresh(void* object) {
  latenz_icc_mailbox* self = (latenz_icc_mailbox*)object;
  self->seen = LATENZ_ICC_LOAD_ACQUIRE(self->written);
  return (self->seen & LICC_COUNT_MASK) != self->count;
}
static inline bool licc_mailbox_free(void* object) {
  latenz_icc_mailbox* self = (latenz_icc_mailbox*)object;
  return self->held || LATENZ_ICC_LOAD_ACQUIRE(self->taken) == self->count;
}
static inline void licc_mailbox_acknowledge(latenz_icc_mailbox* self) {
  self->held = false;
  self->count = self->seen & LICC_COUNT_MASK;
  LATENZ_ICC_STORE_RELEASE(self->taken, self->count);
  licc_notify(&self->endpoint);
}
static inline void licc_mailbox_drop(latenz_icc_mailbox* self) {
  licc_mailbox_acknowledge(self);
  licc_count_dropped(&self->endpoint, 1);
}

/* Opens the writing side: creates the channel if `name` is given, else attaches. */
static inline bool latenz_icc_mailbox_writer(latenz_icc_mailbox* self, void* memory, size_t size,
                                             const latenz_icc_shape* shape, const char* name,
                                             latenz_icc_problem* problem) {
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_mailbox_open(self, memory, shape, 0);
  self->count = LATENZ_ICC_LOAD_RELAXED(self->written) & LICC_COUNT_MASK;
  licc_enter(&self->endpoint);
  return true;
}
/* Opens the reading side. A restarted reader drops the message that waits for it. */
static inline bool latenz_icc_mailbox_reader(latenz_icc_mailbox* self, void* memory, size_t size,
                                             const latenz_icc_shape* shape, const char* name,
                                             latenz_icc_problem* problem) {
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_mailbox_open(self, memory, shape, 1);
  self->count = LATENZ_ICC_LOAD_RELAXED(self->taken);
  if (licc_mailbox_fresh(self) && self->endpoint.epoch != 1) licc_mailbox_drop(self);
  licc_enter(&self->endpoint);
  return true;
}

/* Gives the slot to the reader. */
static inline void licc_mailbox_tell(latenz_icc_mailbox* self) {
  self->held = false;
  self->count = (self->count + 1u) & LICC_COUNT_MASK;
  LATENZ_ICC_STORE_RELEASE(self->written, self->endpoint.epoch << 24 | self->count);
  licc_notify(&self->endpoint);
}
static inline void licc_mailbox_put(latenz_icc_mailbox* self, const void* message) {
  LATENZ_ICC_WRITE(self->payload, message, self->bytes);
  licc_mailbox_tell(self);
}
/* Whether the slot is free, or what is in the way. */
static inline latenz_icc_result licc_mailbox_look(latenz_icc_mailbox* self) {
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  return licc_mailbox_free(self) ? LATENZ_ICC_OK : licc_not_yet(&self->endpoint, LATENZ_ICC_FULL);
}
/* Writes if the message before has been read: `ok`, `full`, `peer restarted`. Wait-free. */
static inline latenz_icc_result latenz_icc_mailbox_try_write(latenz_icc_mailbox* self,
                                                             const void* message) {
  const latenz_icc_result result = licc_mailbox_look(self);
  if (result == LATENZ_ICC_OK) licc_mailbox_put(self, message);
  return result;
}
/* Writes as soon as the message before has been read; otherwise nothing was written. */
static inline latenz_icc_result latenz_icc_mailbox_write(latenz_icc_mailbox* self,
                                                         const void* message,
                                                         const latenz_icc_deadline* deadline) {
  const latenz_icc_result result =
      licc_wait(&self->endpoint, &self->peer, licc_mailbox_free, self, deadline);
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  if (result == LATENZ_ICC_OK) licc_mailbox_put(self, message);
  return result;
}
/* Where the next message may be made in place, seen by nobody before `publish`: otherwise as
 * `try_write`. `*message` is null unless `ok`. A loan that is not published is the next one's.
 * Wait-free. */
static inline latenz_icc_result latenz_icc_mailbox_try_loan(latenz_icc_mailbox* self,
                                                            void** message) {
  const latenz_icc_result result = licc_mailbox_look(self);
  *message = result == LATENZ_ICC_OK ? self->payload : NULL;
  if (result == LATENZ_ICC_OK) self->held = true;
  return result;
}
/* Writes what was lent last; once for each loan. Wait-free. */
static inline void latenz_icc_mailbox_publish(latenz_icc_mailbox* self) {
  if (self->held) licc_mailbox_tell(self);
}

static inline bool licc_mailbox_of_known(const latenz_icc_mailbox* self) {
  return self->seen >> 24 == (self->peer.epoch & 0xFFu);
}
static inline latenz_icc_result licc_mailbox_check(latenz_icc_mailbox* self) {
  return !licc_mailbox_of_known(self) &&
                 (licc_restarted(&self->peer) || !licc_mailbox_of_known(self))
             ? LATENZ_ICC_PEER_RESTARTED
             : LATENZ_ICC_OK;
}
/* A message that was there before the call may be one of an incarnation that is no more. */
static inline latenz_icc_result licc_mailbox_check_waiting(latenz_icc_mailbox* self) {
  const uint32_t now = licc_peer_epoch(&self->peer);
  if (self->seen >> 24 != (now & 0xFFu)) {
    licc_mailbox_drop(self);
    licc_turned_into(&self->peer, now);
    return LATENZ_ICC_PEER_RESTARTED;
  }
  return licc_mailbox_check(self);
}
/* Whether a message is there, or what is in its place. */
static inline latenz_icc_result licc_mailbox_find(latenz_icc_mailbox* self) {
  if (licc_mailbox_fresh(self)) return licc_mailbox_check_waiting(self);
  return licc_restarted(&self->peer) ? LATENZ_ICC_PEER_RESTARTED
                                     : licc_not_yet(&self->endpoint, LATENZ_ICC_EMPTY);
}
static inline latenz_icc_result licc_mailbox_copy(latenz_icc_mailbox* self, void* message) {
  LATENZ_ICC_READ(message, self->payload, self->bytes);
  licc_mailbox_acknowledge(self);
  return LATENZ_ICC_OK;
}
/* Reads if a message is there: `ok`, `empty`, `peer restarted`. Wait-free. */
static inline latenz_icc_result latenz_icc_mailbox_try_read(latenz_icc_mailbox* self,
                                                            void* message) {
  const latenz_icc_result result = licc_mailbox_find(self);
  return result == LATENZ_ICC_OK ? licc_mailbox_copy(self, message) : result;
}
/* Reads as soon as a message is there; otherwise `message` is untouched. */
static inline latenz_icc_result latenz_icc_mailbox_read(latenz_icc_mailbox* self, void* message,
                                                        const latenz_icc_deadline* deadline) {
  latenz_icc_result result;
  if (licc_mailbox_fresh(self)) {
    result = licc_mailbox_check_waiting(self);
  } else {
    result = licc_wait(&self->endpoint, &self->peer, licc_mailbox_fresh, self, deadline);
    if (result == LATENZ_ICC_OK) {
      result = licc_mailbox_check(self);
    } else if (licc_restarted(&self->peer)) {
      result = LATENZ_ICC_PEER_RESTARTED;
    }
  }
  return result == LATENZ_ICC_OK ? licc_mailbox_copy(self, message) : result;
}
/* The message where it stands; it stays until `release`, and no other is written meanwhile.
 * Otherwise as `try_read`; `*message` is null unless `ok`. Wait-free. */
static inline latenz_icc_result latenz_icc_mailbox_try_take(latenz_icc_mailbox* self,
                                                            const void** message) {
  const latenz_icc_result result = licc_mailbox_find(self);
  *message = result == LATENZ_ICC_OK ? self->payload : NULL;
  self->held = result == LATENZ_ICC_OK;
  return result;
}
/* Gives the slot taken last back: `ok`, `empty` if nothing was taken. Wait-free. */
static inline latenz_icc_result latenz_icc_mailbox_release(latenz_icc_mailbox* self) {
  if (!self->held) return LATENZ_ICC_EMPTY;
  licc_mailbox_acknowledge(self);
  return LATENZ_ICC_OK;
}

/* ---- exchange: a request and its reply in one slot ---- */

typedef struct {
  latenz_icc_endpoint endpoint;
  licc_peer peer;
  unsigned char* payload;
  uint32_t* shared_word;
  uint32_t request_bytes;
  uint32_t reply_bytes;
  uint32_t word;
  uint32_t expected; /* of a client: the word's count with its reply */
  bool pending;      /* a client's request was posted; a server's request is to be answered */
  bool lent;         /* the slot, for a request or a reply */
  bool held;         /* a client's reply was taken */
} latenz_icc_exchange;

static inline latenz_icc_shape latenz_icc_exchange_shape(const latenz_icc_type* request,
                                                         const latenz_icc_type* reply) {
  latenz_icc_shape shape = licc_shape(LICC_EXCHANGE, request, reply, 1, 1);
  shape.bytes += licc_lines((request->bytes > reply->bytes ? request->bytes : reply->bytes) + 4u);
  return shape;
}
#ifdef LATENZ_ICC_BELLS
static inline latenz_icc_result latenz_icc_exchange_arm(latenz_icc_exchange* self) {
  return licc_arm(&self->endpoint, &self->peer);
}
#endif
static inline void licc_exchange_open(latenz_icc_exchange* self, void* memory,
                                      const latenz_icc_shape* shape, uint32_t side) {
  memset(self, 0, sizeof *self);
  licc_open(&self->endpoint, memory, shape, side);
  self->payload = self->endpoint.memory + shape->data;
  self->shared_word = licc_at(self->endpoint.memory, shape->bytes - 4u);
  self->request_bytes = shape->payload->bytes;
  self->reply_bytes = shape->reply->bytes;
  self->peer = licc_peer_of(self->endpoint.memory + licc_sides(shape) + (1u - side) * LICC_SIDE);
  self->word = LATENZ_ICC_LOAD_ACQUIRE(self->shared_word);
}
static inline bool licc_exchange_servers(void* object) {
  latenz_icc_exchange* self = (latenz_icc_exchange*)object;
  self->word = LATENZ_ICC_LOAD_ACQUIRE(self->shared_word);
  return (self->word & 1u) != 0;
}
static inline bool licc_exchange_clients(void* object) {
  return ((latenz_icc_exchange*)object)->lent || !licc_exchange_servers(object);
}
static inline void licc_exchange_pass(latenz_icc_exchange* self, uint32_t steps) {
  self->word = self->endpoint.epoch << 24 | ((self->word + steps) & LICC_COUNT_MASK);
  LATENZ_ICC_STORE_RELEASE(self->shared_word, self->word);
  licc_notify(&self->endpoint);
}
static inline bool licc_exchange_of(const latenz_icc_exchange* self, uint32_t epoch) {
  return self->word >> 24 == (epoch & 0xFFu);
}
static inline void licc_exchange_hand_back(latenz_icc_exchange* self) {
  licc_count_dropped(&self->endpoint, 1);
  licc_exchange_pass(self, 3);
}

static inline bool latenz_icc_exchange_client(latenz_icc_exchange* self, void* memory, size_t size,
                                              const latenz_icc_shape* shape, const char* name,
                                              latenz_icc_problem* problem) {
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_exchange_open(self, memory, shape, 0);
  licc_enter(&self->endpoint);
  return true;
}
/* A restarted server hands the request that waits for it back unanswered. */
static inline bool latenz_icc_exchange_server(latenz_icc_exchange* self, void* memory, size_t size,
                                              const latenz_icc_shape* shape, const char* name,
                                              latenz_icc_problem* problem) {
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_exchange_open(self, memory, shape, 1);
  if (self->endpoint.epoch != 1 && (self->word & 1u) != 0) licc_exchange_hand_back(self);
  licc_enter(&self->endpoint);
  return true;
}

static inline void licc_exchange_send(latenz_icc_exchange* self) {
  self->lent = self->held = false;
  licc_exchange_pass(self, 1);
  self->expected = (self->word + 1u) & LICC_COUNT_MASK;
  self->pending = true;
}
static inline void licc_exchange_post(latenz_icc_exchange* self, const void* request) {
  LATENZ_ICC_WRITE(self->payload, request, self->request_bytes);
  licc_exchange_send(self);
}
/* Whether what is there is the reply to this side's request. */
static inline latenz_icc_result licc_exchange_check_reply(latenz_icc_exchange* self) {
  const bool answered = (self->word & LICC_COUNT_MASK) == self->expected;
  self->pending = false;
  if (!answered || !licc_exchange_of(self, self->peer.epoch)) {
    const bool restarted = licc_restarted(&self->peer); /* not so: the server's first coming */
    if (!answered || restarted || !licc_exchange_of(self, self->peer.epoch)) {
      return LATENZ_ICC_PEER_RESTARTED;
    }
  }
  return LATENZ_ICC_OK;
}
static inline latenz_icc_result licc_exchange_collect(latenz_icc_exchange* self, void* reply) {
  const latenz_icc_result result = licc_exchange_check_reply(self);
  if (result == LATENZ_ICC_OK) LATENZ_ICC_READ(reply, self->payload, self->reply_bytes);
  return result;
}
/* Sends a request and waits for its reply; otherwise `reply` is untouched, and whether the server
 * has acted on the request is not known. */
static inline latenz_icc_result latenz_icc_exchange_call(latenz_icc_exchange* self,
                                                         const void* request, void* reply,
                                                         const latenz_icc_deadline* deadline) {
  latenz_icc_result result =
      licc_wait(&self->endpoint, &self->peer, licc_exchange_clients, self, deadline);
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  if (result != LATENZ_ICC_OK) return result;
  licc_exchange_post(self, request);
  result = licc_wait(&self->endpoint, &self->peer, licc_exchange_clients, self, deadline);
  if (result != LATENZ_ICC_OK) {
    return licc_restarted(&self->peer) ? LATENZ_ICC_PEER_RESTARTED : result;
  }
  return licc_exchange_collect(self, reply);
}
/* Whether the turn is the client's, or what is in the way. */
static inline latenz_icc_result licc_exchange_look(latenz_icc_exchange* self) {
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  return licc_exchange_clients(self) ? LATENZ_ICC_OK
                                     : licc_not_yet(&self->endpoint, LATENZ_ICC_FULL);
}
/* Sends a request without waiting: `ok`, `peer restarted`, `full`. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_try_post(latenz_icc_exchange* self,
                                                             const void* request) {
  const latenz_icc_result result = licc_exchange_look(self);
  if (result == LATENZ_ICC_OK) licc_exchange_post(self, request);
  return result;
}
/* Of a client: where the next request may be made in place, seen by nobody before `publish`;
 * otherwise as `try_post`. `*request` is null unless `ok`. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_try_loan(latenz_icc_exchange* self,
                                                             void** request) {
  const latenz_icc_result result = licc_exchange_look(self);
  *request = result == LATENZ_ICC_OK ? self->payload : NULL;
  if (result == LATENZ_ICC_OK) {
    self->lent = true;
    self->held = self->pending = false; /* a reply that is there is written over */
  }
  return result;
}
/* Of a client: sends the request that was lent last; once for each loan. Wait-free. */
static inline void latenz_icc_exchange_publish(latenz_icc_exchange* self) {
  if (self->lent) licc_exchange_send(self);
}
/* Whether a reply is there, or what is in its place. */
static inline latenz_icc_result licc_exchange_find_reply(latenz_icc_exchange* self) {
  if (self->pending && !licc_exchange_servers(self)) return licc_exchange_check_reply(self);
  if (licc_restarted(&self->peer)) {
    self->pending = false;
    return LATENZ_ICC_PEER_RESTARTED;
  }
  return licc_not_yet(&self->endpoint, LATENZ_ICC_EMPTY);
}
/* Takes the reply to the request of `try_post`: `ok`, `empty`, `peer restarted`. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_try_collect(latenz_icc_exchange* self,
                                                                void* reply) {
  const latenz_icc_result result = licc_exchange_find_reply(self);
  if (result == LATENZ_ICC_OK) LATENZ_ICC_READ(reply, self->payload, self->reply_bytes);
  return result;
}
/* Of a client: the reply where it stands, until `release` or the next request; otherwise as
 * `try_collect`. `*reply` is null unless `ok`. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_try_take_reply(latenz_icc_exchange* self,
                                                                   const void** reply) {
  const latenz_icc_result result = licc_exchange_find_reply(self);
  self->held = result == LATENZ_ICC_OK;
  *reply = self->held ? self->payload : NULL;
  return result;
}
/* Of a client: ends the use of the reply taken last: `ok`, `empty` if none was. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_release(latenz_icc_exchange* self) {
  const bool held = self->held;
  self->held = false;
  return held ? LATENZ_ICC_OK : LATENZ_ICC_EMPTY;
}
static inline latenz_icc_result licc_exchange_check_request(latenz_icc_exchange* self) {
  if (!licc_exchange_of(self, self->peer.epoch) &&
      (licc_restarted(&self->peer) || !licc_exchange_of(self, self->peer.epoch))) {
    return LATENZ_ICC_PEER_RESTARTED;
  }
  self->pending = true;
  return LATENZ_ICC_OK;
}
/* A request that was there before the call may be one of an incarnation that is no more. */
static inline latenz_icc_result licc_exchange_check_waiting(latenz_icc_exchange* self) {
  const uint32_t now = licc_peer_epoch(&self->peer);
  if (!licc_exchange_of(self, now)) {
    licc_exchange_hand_back(self);
    licc_turned_into(&self->peer, now);
    return LATENZ_ICC_PEER_RESTARTED;
  }
  return licc_exchange_check_request(self);
}
/* Whether a request is there, or what is in its place. */
static inline latenz_icc_result licc_exchange_find_request(latenz_icc_exchange* self) {
  if (self->pending) return LATENZ_ICC_BUSY;
  if (licc_exchange_servers(self)) return licc_exchange_check_waiting(self);
  return licc_restarted(&self->peer) ? LATENZ_ICC_PEER_RESTARTED
                                     : licc_not_yet(&self->endpoint, LATENZ_ICC_EMPTY);
}
/* Takes a request if one is there, which `answer` must follow: `ok`, `empty`, `busy` before it has,
 * `peer restarted`. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_try_take(latenz_icc_exchange* self,
                                                             void* request) {
  const latenz_icc_result result = licc_exchange_find_request(self);
  if (result == LATENZ_ICC_OK) LATENZ_ICC_READ(request, self->payload, self->request_bytes);
  return result;
}
/* The same as soon as one is there. */
static inline latenz_icc_result latenz_icc_exchange_take(latenz_icc_exchange* self, void* request,
                                                         const latenz_icc_deadline* deadline) {
  latenz_icc_result result;
  if (self->pending) return LATENZ_ICC_BUSY;
  if (licc_exchange_servers(self)) {
    result = licc_exchange_check_waiting(self);
  } else {
    result = licc_wait(&self->endpoint, &self->peer, licc_exchange_servers, self, deadline);
    if (result != LATENZ_ICC_OK) {
      return licc_restarted(&self->peer) ? LATENZ_ICC_PEER_RESTARTED : result;
    }
    result = licc_exchange_check_request(self);
  }
  if (result == LATENZ_ICC_OK) LATENZ_ICC_READ(request, self->payload, self->request_bytes);
  return result;
}
/* Of a server: the request where it stands, until it is answered or `loan_reply`; otherwise as
 * `try_take`. `*request` is null unless `ok`. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_try_take_request(latenz_icc_exchange* self,
                                                                     const void** request) {
  const latenz_icc_result result = licc_exchange_find_request(self);
  *request = result == LATENZ_ICC_OK ? self->payload : NULL;
  return result;
}
static inline void licc_exchange_reply(latenz_icc_exchange* self) {
  self->pending = self->lent = false;
  licc_exchange_pass(self, 1);
}
/* Of a server: where the reply may be made in place of the request; null if there is none to reply
 * to. Nobody sees it before `publish_reply`. Wait-free. */
static inline void* latenz_icc_exchange_loan_reply(latenz_icc_exchange* self) {
  self->lent = self->pending;
  return self->lent ? self->payload : NULL;
}
/* Of a server: replies with what was lent last; once for each loan. Wait-free. */
static inline void latenz_icc_exchange_publish_reply(latenz_icc_exchange* self) {
  if (self->lent) licc_exchange_reply(self);
}
/* Replies to the request taken last; `empty` if there is none to reply to. Wait-free. */
static inline latenz_icc_result latenz_icc_exchange_answer(latenz_icc_exchange* self,
                                                           const void* reply) {
  if (!self->pending) return LATENZ_ICC_EMPTY;
  LATENZ_ICC_WRITE(self->payload, reply, self->reply_bytes);
  licc_exchange_reply(self);
  return LATENZ_ICC_OK;
}

/* ---- latest: the newest value, never torn; nobody waits ---- */

enum { LICC_MAX_READERS = 32 };

typedef struct {
  latenz_icc_endpoint endpoint;
  licc_peer peer;         /* of a reader: the writer */
  unsigned char* control; /* updates, latest, newest[] */
  unsigned char* announcements;
  unsigned char* slots;
  uint32_t bytes;
  uint32_t number_offset;
  uint32_t slot_bytes;
  uint32_t readers;
  uint32_t number; /* of the newest value, or of the one seen last */
  /* of a writer */
  uint32_t newest[LICC_MAX_READERS + 1];
  uint32_t latest;
  uint32_t pair; /* that the next value goes into */
  /* of a reader */
  uint32_t* announcement;
  /* lent to the writer, or seen by the reader; null: none */
  unsigned char* slot;
} latenz_icc_latest;

/* What a reader got; as latenz::icc::Freshness. */
typedef enum {
  LATENZ_ICC_NOTHING,   /* nothing has been written yet */
  LATENZ_ICC_UNCHANGED, /* nothing newer than what this reader saw last */
  LATENZ_ICC_UPDATED
} latenz_icc_freshness;

static inline latenz_icc_shape latenz_icc_latest_shape(const latenz_icc_type* type,
                                                       uint32_t readers) {
  latenz_icc_shape shape = licc_shape(LICC_LATEST, type, NULL, readers, 2u * (readers + 1u));
  shape.bytes += licc_lines(8u + 4u * (readers + 1u)) + LICC_LINE * readers +
                 shape.slots * licc_lines(licc_words(type->bytes) + 4u);
  return shape;
}
#ifdef LATENZ_ICC_BELLS
static inline latenz_icc_result latenz_icc_latest_arm(latenz_icc_latest* self) {
  return licc_arm(&self->endpoint, licc_number_of(&self->endpoint) == 0 ? NULL : &self->peer);
}
#endif
static inline void licc_latest_open(latenz_icc_latest* self, void* memory,
                                    const latenz_icc_shape* shape, uint32_t side) {
  memset(self, 0, sizeof *self);
  licc_open(&self->endpoint, memory, shape, side);
  self->readers = shape->readers;
  self->bytes = shape->payload->bytes;
  self->number_offset = licc_words(self->bytes);
  self->slot_bytes = licc_lines(self->number_offset + 4u);
  self->control = self->endpoint.memory + shape->data;
  self->announcements = self->control + licc_lines(8u + 4u * (self->readers + 1u));
  self->slots = self->announcements + LICC_LINE * self->readers;
}
static inline unsigned char* licc_latest_slot(const latenz_icc_latest* self, uint32_t pair,
                                              uint32_t which) {
  return self->slots + (size_t)(2u * pair + which) * self->slot_bytes;
}

static inline bool latenz_icc_latest_writer(latenz_icc_latest* self, void* memory, size_t size,
                                            const latenz_icc_shape* shape, const char* name,
                                            latenz_icc_problem* problem) {
  uint32_t pair;
  uint32_t latest;
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_latest_open(self, memory, shape, 0);
  latest = LATENZ_ICC_LOAD_RELAXED(licc_at(self->control, 4));
  self->latest = latest == 0 || latest > self->readers + 1u ? 0u : latest - 1u;
  for (pair = 0; pair <= self->readers; ++pair) {
    self->newest[pair] = LATENZ_ICC_LOAD_RELAXED(licc_at(self->control, 8u + 4u * pair)) & 1u;
  }
  self->number = LATENZ_ICC_LOAD_RELAXED(licc_at(self->control, 0));
  /* An earlier incarnation may have ended amid its last stores: a reader may have its value. */
  for (pair = 0; pair <= self->readers; ++pair) {
    unsigned char* slot = licc_latest_slot(self, pair, self->newest[pair]);
    if (LATENZ_ICC_LOAD_RELAXED(licc_at(slot, self->number_offset)) == self->number + 1u) {
      ++self->number;
      self->latest = pair;
      LATENZ_ICC_STORE_RELEASE(licc_at(self->control, 4), pair + 1u);
      LATENZ_ICC_STORE_RELEASE(licc_at(self->control, 0), self->number);
      break;
    }
  }
  licc_enter(&self->endpoint);
  return true;
}

/* Where the next value may be made in place; nobody sees it before `publish`. Wait-free. */
static inline void* latenz_icc_latest_loan(latenz_icc_latest* self) {
  uint64_t announced = 0;
  uint32_t reader;
  uint32_t next;
  LATENZ_ICC_FULL_FENCE();
  for (reader = 0; reader < self->readers; ++reader) {
    uint32_t* word = licc_at(self->announcements, (size_t)LICC_LINE * reader);
    announced |= (uint64_t)1 << (LATENZ_ICC_LOAD_ACQUIRE(word) & 63u);
  }
  self->pair = self->latest;
  for (next = 0; (announced >> (self->pair + 1u) & 1u) != 0 && next <= self->readers; ++next) {
    self->pair = next;
  }
  self->slot = licc_latest_slot(self, self->pair, 1u - self->newest[self->pair]);
  return self->slot;
}
/* Makes what was lent last the newest value; once for each loan. Wait-free. */
static inline void latenz_icc_latest_publish(latenz_icc_latest* self) {
  if (self->slot == NULL) return;
  ++self->number;
  LATENZ_ICC_STORE_RELAXED(licc_at(self->slot, self->number_offset), self->number);
  self->slot = NULL;
  self->newest[self->pair] = 1u - self->newest[self->pair];
  LATENZ_ICC_STORE_RELEASE(licc_at(self->control, 8u + 4u * self->pair), self->newest[self->pair]);
  self->latest = self->pair;
  LATENZ_ICC_STORE_RELEASE(licc_at(self->control, 4), self->pair + 1u);
  LATENZ_ICC_STORE_RELEASE(licc_at(self->control, 0), self->number);
  licc_notify(&self->endpoint);
}
/* Makes `value` the newest. Wait-free. */
static inline void latenz_icc_latest_update(latenz_icc_latest* self, const void* value) {
  void* slot = latenz_icc_latest_loan(self);
  LATENZ_ICC_WRITE(slot, value, self->bytes);
  latenz_icc_latest_publish(self);
}

static inline bool latenz_icc_latest_reader(latenz_icc_latest* self, void* memory, size_t size,
                                            const latenz_icc_shape* shape, const char* name,
                                            uint32_t reader, latenz_icc_problem* problem) {
  if (!licc_ready(problem, memory, size, shape, name, reader)) return false;
  licc_latest_open(self, memory, shape, 1u + reader);
  self->peer = licc_peer_of(self->endpoint.memory + licc_sides(shape));
  self->announcement = licc_at(self->announcements, (size_t)LICC_LINE * reader);
  licc_enter(&self->endpoint);
  return true;
}
/* Moves to the newest value. The announcement moves only if a value is complete that is newer than
 * the one seen: so numbers never fall, and what is unchanged stays protected. */
static inline latenz_icc_freshness licc_latest_advance(latenz_icc_latest* self) {
  const uint32_t updates = LATENZ_ICC_LOAD_ACQUIRE(licc_at(self->control, 0));
  uint32_t latest;
  uint32_t which;
  if (self->slot != NULL && (updates == self->number || updates + 1u == self->number)) {
    return LATENZ_ICC_UNCHANGED;
  }
  latest = LATENZ_ICC_LOAD_ACQUIRE(licc_at(self->control, 4));
  if (latest == 0 || latest > self->readers + 1u || licc_formatted_anew(&self->endpoint)) {
    return LATENZ_ICC_NOTHING;
  }
  LATENZ_ICC_STORE_RELEASE(self->announcement, latest);
  LATENZ_ICC_FULL_FENCE();
  which = LATENZ_ICC_LOAD_ACQUIRE(licc_at(self->control, 8u + 4u * (latest - 1u))) & 1u;
  self->slot = licc_latest_slot(self, latest - 1u, which);
  self->number = LATENZ_ICC_LOAD_RELAXED(licc_at(self->slot, self->number_offset));
  return LATENZ_ICC_UPDATED;
}
/* Copies the newest value into `value` if this reader has not seen it. Wait-free. */
static inline latenz_icc_freshness latenz_icc_latest_poll(latenz_icc_latest* self, void* value) {
  const latenz_icc_freshness freshness = licc_latest_advance(self);
  if (freshness == LATENZ_ICC_UPDATED) LATENZ_ICC_READ(value, self->slot, self->bytes);
  return freshness;
}
/* Copies the newest value, seen or not; false: nothing has been written yet. Wait-free. */
static inline bool latenz_icc_latest_read(latenz_icc_latest* self, void* value) {
  if (licc_latest_advance(self) == LATENZ_ICC_NOTHING) return false;
  LATENZ_ICC_READ(value, self->slot, self->bytes);
  return true;
}
/* The newest value where it stands; null: nothing has been written yet. It stays as it is until
 * this reader's next call. Wait-free. */
static inline const void* latenz_icc_latest_view(latenz_icc_latest* self) {
  return licc_latest_advance(self) == LATENZ_ICC_NOTHING ? NULL : self->slot;
}
/* Whether the writer is the one it was: `ok`, `peer restarted` (told once), `peer gone`,
 * `layout changed`. Wait-free. */
static inline latenz_icc_result latenz_icc_latest_check_writer(latenz_icc_latest* self) {
  if (licc_formatted_anew(&self->endpoint)) return LATENZ_ICC_LAYOUT_CHANGED;
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  return self->peer.epoch != 0 && !licc_is_open(&self->peer) ? LATENZ_ICC_PEER_GONE : LATENZ_ICC_OK;
}

/* ---- ring: a stream for lossless readers ---- */

typedef struct {
  latenz_icc_endpoint endpoint;
  licc_peer peer; /* of a reader: the writer */
  unsigned char* data;
  uint32_t left_bytes;
  uint32_t begun_offset;
  uint32_t bytes;
  uint32_t slot_bytes;
  uint32_t slots;
  uint32_t readers;
  uint32_t number; /* of the newest message, or of the last one taken */
  uint32_t limit;  /* writer: up to this message no lossless reader is overtaken */
  uint32_t begun;  /* writer */
  uint32_t seen;   /* reader: newest message that is known to be there */
  uint32_t index;  /* of a reader; of the one that a writer waits for */
  bool held;       /* a slot is lent, or taken */
} latenz_icc_ring;

static inline uint32_t licc_ring_begun(uint32_t readers) {
  return licc_pairs(LICC_LINE + licc_lines(4u * readers) + LICC_LINE * readers);
}
/* `slots`: a power of two, from 2; `readers`: lossless ones, from 0. */
static inline latenz_icc_shape latenz_icc_ring_shape(const latenz_icc_type* type, uint32_t slots,
                                                     uint32_t readers) {
  latenz_icc_shape shape = licc_shape(LICC_RING, type, NULL, readers, slots);
  shape.bytes += licc_ring_begun(readers) + 128u + licc_lines(slots * licc_words(type->bytes));
  return shape;
}
#ifdef LATENZ_ICC_BELLS
static inline latenz_icc_result latenz_icc_ring_arm(latenz_icc_ring* self) {
  return licc_arm(&self->endpoint, licc_number_of(&self->endpoint) == 0 ? NULL : &self->peer);
}
#endif
static inline void licc_ring_open(latenz_icc_ring* self, void* memory,
                                  const latenz_icc_shape* shape, uint32_t side) {
  memset(self, 0, sizeof *self);
  licc_open(&self->endpoint, memory, shape, side);
  self->data = self->endpoint.memory + shape->data;
  self->readers = shape->readers;
  self->slots = shape->slots;
  self->left_bytes = licc_lines(4u * self->readers);
  self->begun_offset = licc_ring_begun(self->readers);
  self->bytes = shape->payload->bytes;
  self->slot_bytes = licc_words(self->bytes);
}
static inline uint32_t* licc_ring_left(const latenz_icc_ring* self, uint32_t reader) {
  return licc_at(self->data, LICC_LINE + 4u * reader);
}
static inline uint32_t* licc_ring_taken(const latenz_icc_ring* self, uint32_t reader) {
  return licc_at(self->data, LICC_LINE + self->left_bytes + LICC_LINE * reader);
}
static inline unsigned char* licc_ring_slot(const latenz_icc_ring* self, uint32_t number) {
  return self->data + self->begun_offset + 128u +
         (size_t)(number & (self->slots - 1u)) * self->slot_bytes;
}

static inline bool latenz_icc_ring_writer(latenz_icc_ring* self, void* memory, size_t size,
                                          const latenz_icc_shape* shape, const char* name,
                                          latenz_icc_problem* problem) {
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_ring_open(self, memory, shape, 0);
  self->number = LATENZ_ICC_LOAD_RELAXED(licc_at(self->data, 0));
  self->limit = self->number;
  self->begun = LATENZ_ICC_LOAD_RELAXED(licc_at(self->data, self->begun_offset));
  licc_enter(&self->endpoint);
  return true;
}
static inline bool licc_ring_is_served(const latenz_icc_ring* self, uint32_t reader) {
  unsigned char* side = self->endpoint.sides + (1u + reader) * LICC_SIDE;
  return LATENZ_ICC_LOAD_ACQUIRE(licc_at(side, LICC_OPEN)) != 0 &&
         LATENZ_ICC_LOAD_ACQUIRE(licc_at(side, 0)) !=
             LATENZ_ICC_LOAD_RELAXED(licc_ring_left(self, reader));
}
static inline uint32_t licc_ring_free_of(const latenz_icc_ring* self, uint32_t reader) {
  uint32_t waiting;
  if (!licc_ring_is_served(self, reader)) {
    LATENZ_ICC_FULL_FENCE(); /* one that attaches now sees the newest message, or is seen here */
    if (!licc_ring_is_served(self, reader)) return self->slots;
  }
  waiting = self->number - LATENZ_ICC_LOAD_ACQUIRE(licc_ring_taken(self, reader));
  return waiting < self->slots ? self->slots - waiting : 0u;
}
static inline uint32_t licc_ring_free(latenz_icc_ring* self) {
  uint32_t least = self->slots;
  uint32_t reader;
  if (self->readers == 0) return least;
  if (self->limit == self->number) {
    for (reader = 0; reader < self->readers; ++reader) {
      const uint32_t free_slots = licc_ring_free_of(self, reader);
      if (free_slots < least) least = free_slots;
    }
    self->limit = self->number + least;
  }
  return self->limit - self->number;
}
/* Index of a lossless reader that has no slot free; the number of readers if there is none. */
static inline uint32_t latenz_icc_ring_late_reader(const latenz_icc_ring* self) {
  uint32_t reader;
  for (reader = 0; reader < self->readers; ++reader) {
    if (licc_ring_free_of(self, reader) == 0) break;
  }
  return reader;
}
/* Waits for this lossless reader no more, until it attaches anew. Wait-free. */
static inline void latenz_icc_ring_leave_behind(latenz_icc_ring* self, uint32_t reader) {
  if (reader < self->readers) {
    unsigned char* side = self->endpoint.sides + (1u + reader) * LICC_SIDE;
    const uint32_t epoch = LATENZ_ICC_LOAD_ACQUIRE(licc_at(side, 0));
    LATENZ_ICC_STORE_RELAXED(licc_ring_left(self, reader), epoch);
  }
}
/* The slot up to this message is in the writer's hands from now on. */
static inline void licc_ring_begin(latenz_icc_ring* self, uint32_t last) {
  if ((int32_t)(last - self->begun) > 0) { /* not so: a predecessor died there */
    self->begun = last;
    LATENZ_ICC_STORE_RELAXED(licc_at(self->data, self->begun_offset), last);
  }
  LATENZ_ICC_RELEASE_FENCE();
}
static inline void licc_ring_tell(latenz_icc_ring* self, uint32_t count) {
  self->number += count;
  LATENZ_ICC_STORE_RELEASE(licc_at(self->data, 0), self->number);
  licc_notify(&self->endpoint);
}
static inline void licc_ring_put(latenz_icc_ring* self, const void* messages, uint32_t count) {
  const unsigned char* from = (const unsigned char*)messages;
  uint32_t i;
  licc_ring_begin(self, self->number + count);
  for (i = 0; i < count; ++i) {
    LATENZ_ICC_WRITE(licc_ring_slot(self, self->number + 1u + i), from + (size_t)i * self->bytes,
                     self->bytes);
  }
  self->held = false;
  licc_ring_tell(self, count);
}
/* Writes if every lossless reader has a slot free: `ok`, `full`. Wait-free. */
static inline latenz_icc_result latenz_icc_ring_try_write(latenz_icc_ring* self,
                                                          const void* message) {
  if (licc_ring_free(self) == 0) return licc_not_yet(&self->endpoint, LATENZ_ICC_FULL);
  licc_ring_put(self, message, 1);
  return LATENZ_ICC_OK;
}
/* Writes as many of `*count` messages as there are slots known to be free, all at once: `ok` and
 * how many in `*count`, at least one; `full` if none is free. Wait-free. */
static inline latenz_icc_result latenz_icc_ring_try_write_some(latenz_icc_ring* self,
                                                               const void* messages,
                                                               uint32_t* count) {
  const uint32_t free_slots = licc_ring_free(self);
  if (*count > free_slots) {
    *count = free_slots;
    if (free_slots == 0) return licc_not_yet(&self->endpoint, LATENZ_ICC_FULL);
  }
  if (*count != 0) licc_ring_put(self, messages, *count);
  return LATENZ_ICC_OK;
}
static inline bool licc_ring_reader_ready(void* object) {
  const latenz_icc_ring* self = (const latenz_icc_ring*)object;
  return licc_ring_free_of(self, self->index) != 0;
}
static inline latenz_icc_result licc_ring_await_slot(latenz_icc_ring* self,
                                                     const latenz_icc_deadline* deadline) {
  while (licc_ring_free(self) == 0) {
    licc_peer reader;
    latenz_icc_result result;
    self->index = latenz_icc_ring_late_reader(self);
    if (self->index == self->readers) continue;
    reader = licc_peer_of(self->endpoint.sides + (1u + self->index) * LICC_SIDE);
    result = licc_wait(&self->endpoint, &reader, licc_ring_reader_ready, self, deadline);
    if (result != LATENZ_ICC_OK) return result;
  }
  return LATENZ_ICC_OK;
}
/* Writes as soon as every lossless reader has a slot free; otherwise nothing was written. */
static inline latenz_icc_result latenz_icc_ring_write(latenz_icc_ring* self, const void* message,
                                                      const latenz_icc_deadline* deadline) {
  const latenz_icc_result result = licc_ring_await_slot(self, deadline);
  if (result == LATENZ_ICC_OK) licc_ring_put(self, message, 1);
  return result;
}
/* Where the next message may be made in place, seen by nobody before `publish`; null if there is no
 * slot free. A loan that is not published is the next one's. Wait-free. */
static inline void* latenz_icc_ring_try_loan(latenz_icc_ring* self) {
  if (licc_ring_free(self) == 0) return NULL;
  licc_ring_begin(self, self->number + 1u);
  self->held = true;
  return licc_ring_slot(self, self->number + 1u);
}
/* The same as soon as every lossless reader has a slot free; `*message` is null unless `ok`. */
static inline latenz_icc_result latenz_icc_ring_loan(latenz_icc_ring* self, void** message,
                                                     const latenz_icc_deadline* deadline) {
  const latenz_icc_result result = licc_ring_await_slot(self, deadline);
  *message = result == LATENZ_ICC_OK ? latenz_icc_ring_try_loan(self) : NULL;
  return result;
}
/* Makes what was lent last the newest message; once for each loan. Wait-free. */
static inline void latenz_icc_ring_publish(latenz_icc_ring* self) {
  if (self->held) {
    self->held = false;
    licc_ring_tell(self, 1);
  }
}

static inline void licc_ring_go_to_newest(latenz_icc_ring* self) {
  self->number = LATENZ_ICC_LOAD_ACQUIRE(licc_at(self->data, 0));
  self->seen = self->number;
  LATENZ_ICC_STORE_RELEASE(licc_ring_taken(self, self->index), self->number);
}
/* A restarted reader goes on behind what is there. */
static inline bool latenz_icc_ring_reader(latenz_icc_ring* self, void* memory, size_t size,
                                          const latenz_icc_shape* shape, const char* name,
                                          uint32_t reader, latenz_icc_problem* problem) {
  uint32_t taken_before;
  if (!licc_ready(problem, memory, size, shape, name, reader)) return false;
  if (shape->readers == 0) {
    problem->flaw = LATENZ_ICC_READER;
    problem->here = reader;
    return false;
  }
  licc_ring_open(self, memory, shape, 1u + reader);
  self->index = reader;
  self->peer = licc_peer_of(self->endpoint.sides);
  taken_before = LATENZ_ICC_LOAD_RELAXED(licc_ring_taken(self, reader));
  licc_ring_go_to_newest(self);
  if (self->endpoint.epoch != 1) licc_count_dropped(&self->endpoint, self->number - taken_before);
  licc_enter(&self->endpoint);
  LATENZ_ICC_FULL_FENCE(); /* from here on the writer waits for this reader */
  licc_ring_go_to_newest(self);
  licc_notify(&self->endpoint);
  return true;
}
static inline bool licc_ring_is_there(void* object) {
  latenz_icc_ring* self = (latenz_icc_ring*)object;
  if (self->seen == self->number) self->seen = LATENZ_ICC_LOAD_ACQUIRE(licc_at(self->data, 0));
  return self->seen != self->number;
}
static inline latenz_icc_result licc_ring_look(latenz_icc_ring* self) {
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  if (!licc_ring_is_there(self)) return licc_not_yet(&self->endpoint, LATENZ_ICC_EMPTY);
  return self->seen - self->number <= self->slots ? LATENZ_ICC_OK : LATENZ_ICC_BUSY;
}
/* Messages were read: whole, unless the writer has left this reader behind. */
static inline latenz_icc_result licc_ring_finish(latenz_icc_ring* self, uint32_t count) {
  self->held = false;
  LATENZ_ICC_ACQUIRE_FENCE();
  if (LATENZ_ICC_LOAD_RELAXED(licc_ring_left(self, self->index)) == self->endpoint.epoch) {
    return LATENZ_ICC_BUSY;
  }
  self->number += count;
  LATENZ_ICC_STORE_RELEASE(licc_ring_taken(self, self->index), self->number);
  licc_notify(&self->endpoint);
  return LATENZ_ICC_OK;
}
static inline latenz_icc_result licc_ring_copy(latenz_icc_ring* self, void* messages,
                                               uint32_t count) {
  unsigned char* to = (unsigned char*)messages;
  uint32_t i;
  for (i = 0; i < count; ++i) {
    LATENZ_ICC_READ(to + (size_t)i * self->bytes, licc_ring_slot(self, self->number + 1u + i),
                    self->bytes);
  }
  return licc_ring_finish(self, count);
}
/* Reads the next message: `ok`, `empty`, `peer restarted`, `busy` if the writer has left this
 * reader behind (attach anew). Wait-free. */
static inline latenz_icc_result latenz_icc_ring_try_read(latenz_icc_ring* self, void* message) {
  const latenz_icc_result result = licc_ring_look(self);
  return result == LATENZ_ICC_OK ? licc_ring_copy(self, message, 1) : result;
}
/* Reads as many messages as are known to be there, at most `*count`: `ok` and how many in `*count`,
 * at least one; otherwise as `try_read`. Wait-free. */
static inline latenz_icc_result latenz_icc_ring_try_read_some(latenz_icc_ring* self, void* messages,
                                                              uint32_t* count) {
  const uint32_t wanted = *count;
  latenz_icc_result result = LATENZ_ICC_OK;
  if (wanted == 0) return result;
  *count = 0;
  result = licc_ring_look(self);
  if (result == LATENZ_ICC_OK) {
    const uint32_t there = self->seen - self->number;
    const uint32_t taken = there < wanted ? there : wanted;
    result = licc_ring_copy(self, messages, taken);
    if (result == LATENZ_ICC_OK) *count = taken;
  }
  return result;
}
static inline latenz_icc_result licc_ring_await_message(latenz_icc_ring* self,
                                                        const latenz_icc_deadline* deadline) {
  const latenz_icc_result result =
      licc_wait(&self->endpoint, &self->peer, licc_ring_is_there, self, deadline);
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  if (result != LATENZ_ICC_OK) return result;
  return self->seen - self->number <= self->slots ? LATENZ_ICC_OK : LATENZ_ICC_BUSY;
}
/* Reads the next message as soon as it is there. */
static inline latenz_icc_result latenz_icc_ring_read(latenz_icc_ring* self, void* message,
                                                     const latenz_icc_deadline* deadline) {
  const latenz_icc_result result = licc_ring_await_message(self, deadline);
  return result == LATENZ_ICC_OK ? licc_ring_copy(self, message, 1) : result;
}
static inline latenz_icc_result licc_ring_hold(latenz_icc_ring* self, const void** message,
                                               latenz_icc_result result) {
  *message = result == LATENZ_ICC_OK ? licc_ring_slot(self, self->number + 1u) : NULL;
  self->held = result == LATENZ_ICC_OK;
  return result;
}
/* The next message where it stands; it stays until `release`. `*message` is null unless `ok`.
 * Wait-free. */
static inline latenz_icc_result latenz_icc_ring_try_take(latenz_icc_ring* self,
                                                         const void** message) {
  return licc_ring_hold(self, message, licc_ring_look(self));
}
/* The same as soon as it is there. */
static inline latenz_icc_result latenz_icc_ring_take(latenz_icc_ring* self, const void** message,
                                                     const latenz_icc_deadline* deadline) {
  return licc_ring_hold(self, message, licc_ring_await_message(self, deadline));
}
/* Gives the slot taken last back: `ok`, `empty` if none was taken, `busy` if what was read there
 * may be torn, since the writer has left this reader behind meanwhile. Wait-free. */
static inline latenz_icc_result latenz_icc_ring_release(latenz_icc_ring* self) {
  return self->held ? licc_ring_finish(self, 1) : LATENZ_ICC_EMPTY;
}

/* ---- pool: messages of varying length, in blocks of several sizes ---- */

enum { LICC_MOST_CLASSES = 16, LICC_ENTRY = 16 };

/* Blocks of one size. */
typedef struct {
  uint32_t block_bytes;
  uint32_t blocks;
  uint32_t first;  /* number of its first block */
  uint32_t offset; /* of that block in the channel */
  uint32_t next;   /* of a writer: where to look first for a free one */
} licc_pool_class;

/* A message on its way. */
typedef struct {
  uint32_t block;
  uint32_t items;
  uint32_t ticket;
  uint32_t reserved;
} licc_pool_entry;

typedef struct {
  latenz_icc_endpoint endpoint;
  licc_peer peer; /* of a reader */
  licc_pool_class classes[LICC_MOST_CLASSES];
  uint32_t class_count;
  uint32_t blocks;  /* of all classes */
  uint32_t entries; /* a power of two, more than blocks */
  uint32_t tickets; /* offsets in the channel; the head is a line before the tickets */
  uint32_t table;
  uint32_t taken; /* the states are a line behind it */
  uint32_t first_block;
  uint32_t item_bytes;
  uint32_t longest;      /* items */
  uint32_t number;       /* of the newest message; of the one taken last */
  uint32_t seen;         /* of a reader: newest message that is known to be there */
  uint32_t wanted;       /* of a writer: items that it waits to have a block for */
  uint32_t lent;         /* items */
  bool held;             /* a block is lent */
  licc_pool_entry entry; /* the block found last, with its ticket; the message taken last */
} latenz_icc_pool;

/* Where things are, for messages of up to `longest` bytes in `messages` blocks of a line, a quarter
 * as many of each size that is four times as large, at least two; returns the bytes of it all. */
static inline uint32_t licc_pool_plan(latenz_icc_pool* self, uint32_t data, uint32_t longest,
                                      uint32_t messages) {
  uint32_t sizes[LICC_MOST_CLASSES];
  uint32_t size = licc_lines(longest);
  uint32_t words;
  uint32_t offset;
  uint32_t i;
  self->class_count = 0;
  sizes[self->class_count++] = size;
  while (size > LICC_LINE) {
    size = licc_lines(size / 4u);
    sizes[self->class_count++] = size;
  }
  self->blocks = 0;
  for (i = 0; i < self->class_count; ++i) {
    licc_pool_class* const its = &self->classes[i];
    its->block_bytes = sizes[self->class_count - 1u - i];
    its->blocks = messages;
    its->first = self->blocks;
    its->next = 0;
    self->blocks += messages;
    messages = messages / 4u > 2u ? messages / 4u : 2u;
  }
  self->entries = 2;
  while (self->entries <= self->blocks) self->entries *= 2u;
  words = licc_lines(self->blocks * 4u);
  self->tickets = data + LICC_LINE;
  self->table = self->tickets + words;
  self->taken = licc_pairs(self->table + licc_lines(self->entries * LICC_ENTRY));
  self->first_block = licc_pairs(self->taken + LICC_LINE + words);
  offset = self->first_block;
  for (i = 0; i < self->class_count; ++i) {
    self->classes[i].offset = offset;
    offset += self->classes[i].blocks * self->classes[i].block_bytes;
  }
  return offset; /* below 3 GiB: at least two blocks of 1 GiB and of its quarters */
}

/* `longest`: items of the longest message, at most 1 GiB; `messages`: blocks of a line, 2 to 65536.
 * For others there is no memory (LATENZ_ICC_NO_MEMORY). */
static inline latenz_icc_shape latenz_icc_pool_shape(const latenz_icc_type* item, uint32_t longest,
                                                     uint32_t messages) {
  latenz_icc_shape shape = licc_shape(LICC_POOL, item, NULL, 1, messages);
  latenz_icc_pool planned;
  const uint64_t bytes = (uint64_t)longest * item->bytes;
  shape.bytes = UINT32_MAX;
  if (longest == 0 || bytes > 1u << 30 || messages < 2u || messages > 1u << 16) return shape;
  shape.longest = (uint32_t)bytes;
  shape.bytes = licc_pool_plan(&planned, shape.data, shape.longest, messages);
  return shape;
}
#ifdef LATENZ_ICC_BELLS
static inline latenz_icc_result latenz_icc_pool_arm(latenz_icc_pool* self) {
  return licc_arm(&self->endpoint, licc_number_of(&self->endpoint) == 0 ? NULL : &self->peer);
}
#endif
static inline void licc_pool_open(latenz_icc_pool* self, void* memory,
                                  const latenz_icc_shape* shape, uint32_t side) {
  memset(self, 0, sizeof *self);
  licc_open(&self->endpoint, memory, shape, side);
  self->item_bytes = shape->payload->bytes;
  self->longest = shape->longest / self->item_bytes;
  (void)licc_pool_plan(self, shape->data, shape->longest, shape->slots);
}
static inline uint32_t* licc_pool_head(const latenz_icc_pool* self) {
  return licc_at(self->endpoint.memory, self->tickets - LICC_LINE);
}
/* State that a block has when the reader has given it back. */
static inline uint32_t* licc_pool_ticket(const latenz_icc_pool* self, uint32_t block) {
  return licc_at(self->endpoint.memory, self->tickets + 4u * (size_t)block);
}
/* Odd while the reader holds what is in the block. */
static inline uint32_t* licc_pool_state(const latenz_icc_pool* self, uint32_t block) {
  return licc_at(self->endpoint.memory, self->taken + LICC_LINE + 4u * (size_t)block);
}
static inline unsigned char* licc_pool_entry_at(const latenz_icc_pool* self, uint32_t number) {
  return self->endpoint.memory + self->table + (size_t)(number & (self->entries - 1u)) * LICC_ENTRY;
}
static inline licc_pool_entry licc_pool_entry_of(const latenz_icc_pool* self, uint32_t number) {
  licc_pool_entry entry;
  LATENZ_ICC_READ(&entry, licc_pool_entry_at(self, number), sizeof entry);
  return entry;
}
/* The smallest class with room for so many items; the number of classes if there is none. */
static inline uint32_t licc_pool_class_for(const latenz_icc_pool* self, uint32_t items) {
  uint32_t fitting = 0;
  if (items > self->longest) return self->class_count;
  while (items * self->item_bytes > self->classes[fitting].block_bytes) ++fitting;
  return fitting;
}
static inline const licc_pool_class* licc_pool_class_of(const latenz_icc_pool* self,
                                                        uint32_t block) {
  const licc_pool_class* its = self->classes;
  while (block >= its->first + its->blocks) ++its;
  return its;
}
static inline unsigned char* licc_pool_block(const latenz_icc_pool* self, uint32_t block) {
  const licc_pool_class* const its = licc_pool_class_of(self, block);
  return self->endpoint.memory + its->offset + (size_t)(block - its->first) * its->block_bytes;
}
/* Whether an entry leads to nothing but a block, and no farther than to its end. */
static inline bool licc_pool_leads_inside(const latenz_icc_pool* self,
                                          const licc_pool_entry* entry) {
  return entry->block < self->blocks && entry->items <= self->longest &&
         entry->items * self->item_bytes <= licc_pool_class_of(self, entry->block)->block_bytes;
}

static inline bool latenz_icc_pool_writer(latenz_icc_pool* self, void* memory, size_t size,
                                          const latenz_icc_shape* shape, const char* name,
                                          latenz_icc_problem* problem) {
  licc_pool_entry newest;
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_pool_open(self, memory, shape, 0);
  self->number = LATENZ_ICC_LOAD_RELAXED(licc_pool_head(self));
  newest = licc_pool_entry_of(self, self->number);
  /* An earlier incarnation may have died between the newest message and its ticket. */
  if (newest.block < self->blocks) {
    LATENZ_ICC_STORE_RELAXED(licc_pool_ticket(self, newest.block), newest.ticket);
  }
  licc_enter(&self->endpoint);
  return true;
}
/* Looks for a free block of the class, from behind the one it found last. */
static inline bool licc_pool_find(latenz_icc_pool* self, uint32_t items) {
  const uint32_t fitting = licc_pool_class_for(self, items);
  licc_pool_class* const its = &self->classes[fitting];
  uint32_t i;
  self->held = false;
  if (fitting == self->class_count) return false;
  for (i = 0; i < its->blocks; ++i) {
    self->entry.block = its->first + its->next;
    its->next = its->next + 1u == its->blocks ? 0u : its->next + 1u;
    self->entry.ticket = LATENZ_ICC_LOAD_RELAXED(licc_pool_ticket(self, self->entry.block));
    if (LATENZ_ICC_LOAD_ACQUIRE(licc_pool_state(self, self->entry.block)) == self->entry.ticket) {
      return true;
    }
  }
  return false;
}
static inline bool licc_pool_found(void* object) {
  latenz_icc_pool* self = (latenz_icc_pool*)object;
  return licc_pool_find(self, self->wanted);
}
static inline latenz_icc_result licc_pool_look_for(latenz_icc_pool* self, uint32_t items) {
  if (licc_pool_find(self, items)) return LATENZ_ICC_OK;
  return items > self->longest ? LATENZ_ICC_FULL : licc_not_yet(&self->endpoint, LATENZ_ICC_FULL);
}
static inline latenz_icc_result licc_pool_await_block(latenz_icc_pool* self, uint32_t items,
                                                      const latenz_icc_deadline* deadline) {
  const licc_peer reader = licc_peer_of(self->endpoint.sides + LICC_SIDE);
  if (items > self->longest) return LATENZ_ICC_FULL;
  self->wanted = items;
  return licc_wait(&self->endpoint, &reader, licc_pool_found, self, deadline);
}
/* The message counts from the head on. Its ticket comes behind: would it come before, and this side
 * die between, nobody gave the block back. */
static inline void licc_pool_tell(latenz_icc_pool* self, uint32_t items) {
  self->held = false;
  self->entry.items = items;
  self->entry.ticket += 2u;
  self->entry.reserved = 0;
  ++self->number;
  LATENZ_ICC_WRITE(licc_pool_entry_at(self, self->number), &self->entry, sizeof self->entry);
  LATENZ_ICC_STORE_RELEASE(licc_pool_head(self), self->number);
  LATENZ_ICC_STORE_RELEASE(licc_pool_ticket(self, self->entry.block), self->entry.ticket);
  licc_notify(&self->endpoint);
}
static inline latenz_icc_result licc_pool_put(latenz_icc_pool* self, const void* message,
                                              uint32_t items, latenz_icc_result found) {
  if (found == LATENZ_ICC_OK) {
    LATENZ_ICC_WRITE(licc_pool_block(self, self->entry.block), message,
                     (size_t)items * self->item_bytes);
    licc_pool_tell(self, items);
  }
  return found;
}
/* Writes `items` of them if a block of their class is free: `ok`, `full`. Wait-free. */
static inline latenz_icc_result latenz_icc_pool_try_write(latenz_icc_pool* self,
                                                          const void* message, uint32_t items) {
  return licc_pool_put(self, message, items, licc_pool_look_for(self, items));
}
/* Writes as soon as a block is free; `full` at once if no message is so long. */
static inline latenz_icc_result latenz_icc_pool_write(latenz_icc_pool* self, const void* message,
                                                      uint32_t items,
                                                      const latenz_icc_deadline* deadline) {
  return licc_pool_put(self, message, items, licc_pool_await_block(self, items, deadline));
}
static inline latenz_icc_result licc_pool_lend(latenz_icc_pool* self, uint32_t items,
                                               void** message, latenz_icc_result found) {
  self->held = found == LATENZ_ICC_OK;
  self->lent = items;
  *message = self->held ? licc_pool_block(self, self->entry.block) : NULL;
  return found;
}
/* Where the next message, of so many items, may be made in place, seen by nobody before `publish`:
 * `ok`, `full`; `*message` is null unless `ok`. A loan that is not published is the next one's.
 * Wait-free. */
static inline latenz_icc_result latenz_icc_pool_try_loan(latenz_icc_pool* self, uint32_t items,
                                                         void** message) {
  return licc_pool_lend(self, items, message, licc_pool_look_for(self, items));
}
/* The same as soon as a block is free; `full` at once if no message is so long. */
static inline latenz_icc_result latenz_icc_pool_loan(latenz_icc_pool* self, uint32_t items,
                                                     void** message,
                                                     const latenz_icc_deadline* deadline) {
  return licc_pool_lend(self, items, message, licc_pool_await_block(self, items, deadline));
}
/* Sends the first `items` of what was lent last, at most as many as were; once for each loan.
 * Wait-free. */
static inline void latenz_icc_pool_publish(latenz_icc_pool* self, uint32_t items) {
  if (self->held) licc_pool_tell(self, items < self->lent ? items : self->lent);
}

static inline bool licc_pool_give_back(latenz_icc_pool* self, uint32_t block) {
  const uint32_t state = LATENZ_ICC_LOAD_RELAXED(licc_pool_state(self, block));
  if (state % 2u == 0) return false;
  LATENZ_ICC_STORE_RELEASE(licc_pool_state(self, block), state + 1u);
  licc_notify(&self->endpoint);
  return true;
}
/* Whether an entry is a message that was not taken yet. */
static inline bool licc_pool_is_next(const latenz_icc_pool* self, const licc_pool_entry* entry) {
  return licc_pool_leads_inside(self, entry) && entry->ticket % 2u == 0 &&
         LATENZ_ICC_LOAD_RELAXED(licc_pool_state(self, entry->block)) == entry->ticket - 2u;
}
/* A restarted reader goes on with the message after the last one that was taken; what its
 * predecessor held is given back, and counted as dropped. */
static inline bool latenz_icc_pool_reader(latenz_icc_pool* self, void* memory, size_t size,
                                          const latenz_icc_shape* shape, const char* name,
                                          latenz_icc_problem* problem) {
  licc_pool_entry last;
  uint32_t block;
  if (!licc_ready(problem, memory, size, shape, name, 0)) return false;
  licc_pool_open(self, memory, shape, 1);
  self->peer = licc_peer_of(self->endpoint.sides);
  self->number = LATENZ_ICC_LOAD_RELAXED(licc_at(self->endpoint.memory, self->taken));
  self->seen = self->number;
  /* It may have died between the last message it took and that one's state; the writer has not
   * written over the entry, since there are more entries than blocks. */
  last = licc_pool_entry_of(self, self->number);
  if (licc_pool_is_next(self, &last)) {
    LATENZ_ICC_STORE_RELEASE(licc_pool_state(self, last.block), last.ticket - 1u);
  }
  for (block = 0; block < self->blocks; ++block) {
    if (licc_pool_give_back(self, block)) licc_count_dropped(&self->endpoint, 1);
  }
  licc_enter(&self->endpoint);
  return true;
}
static inline bool licc_pool_is_there(void* object) {
  latenz_icc_pool* self = (latenz_icc_pool*)object;
  if (self->seen == self->number) self->seen = LATENZ_ICC_LOAD_ACQUIRE(licc_pool_head(self));
  return self->seen != self->number;
}
/* Takes the next message. First its number, then its state: would this side die between in the
 * other order, a message whose block was given back would be taken. */
static inline latenz_icc_result licc_pool_next(latenz_icc_pool* self) {
  if (self->seen - self->number > self->blocks) { /* each has a block: there are not so many */
    self->number = self->seen - 1u;
  }
  ++self->number;
  self->entry = licc_pool_entry_of(self, self->number);
  LATENZ_ICC_STORE_RELAXED(licc_at(self->endpoint.memory, self->taken), self->number);
  if (!licc_pool_is_next(self, &self->entry)) {
    licc_count_dropped(&self->endpoint, 1);
    return LATENZ_ICC_BUSY;
  }
  LATENZ_ICC_STORE_RELEASE(licc_pool_state(self, self->entry.block), self->entry.ticket - 1u);
  return LATENZ_ICC_OK;
}
static inline latenz_icc_result licc_pool_look(latenz_icc_pool* self) {
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  if (!licc_pool_is_there(self)) return licc_not_yet(&self->endpoint, LATENZ_ICC_EMPTY);
  return licc_pool_next(self);
}
static inline latenz_icc_result licc_pool_await_message(latenz_icc_pool* self,
                                                        const latenz_icc_deadline* deadline) {
  const latenz_icc_result result =
      licc_wait(&self->endpoint, &self->peer, licc_pool_is_there, self, deadline);
  if (licc_restarted(&self->peer)) return LATENZ_ICC_PEER_RESTARTED;
  return result == LATENZ_ICC_OK ? licc_pool_next(self) : result;
}
static inline latenz_icc_result licc_pool_copy(latenz_icc_pool* self, void* message,
                                               uint32_t* items, latenz_icc_result found) {
  *items = 0;
  if (found == LATENZ_ICC_OK) {
    *items = self->entry.items;
    LATENZ_ICC_READ(message, licc_pool_block(self, self->entry.block),
                    (size_t)*items * self->item_bytes);
    (void)licc_pool_give_back(self, self->entry.block);
  }
  return found;
}
/* Copies the next message, for which there is room if it is the longest, and tells its items: `ok`,
 * `empty`, `peer restarted`, `busy` if what is there is no message of this library: it is passed
 * over and counted as dropped. Wait-free. */
static inline latenz_icc_result latenz_icc_pool_try_read(latenz_icc_pool* self, void* message,
                                                         uint32_t* items) {
  return licc_pool_copy(self, message, items, licc_pool_look(self));
}
/* The same as soon as it is there. */
static inline latenz_icc_result latenz_icc_pool_read(latenz_icc_pool* self, void* message,
                                                     uint32_t* items,
                                                     const latenz_icc_deadline* deadline) {
  return licc_pool_copy(self, message, items, licc_pool_await_message(self, deadline));
}
static inline latenz_icc_result licc_pool_hold(latenz_icc_pool* self, const void** message,
                                               uint32_t* items, latenz_icc_result found) {
  *items = found == LATENZ_ICC_OK ? self->entry.items : 0u;
  *message = found == LATENZ_ICC_OK ? licc_pool_block(self, self->entry.block) : NULL;
  return found;
}
/* The next message where it stands, until its `release`; others may be taken meanwhile. `*message`
 * is null unless `ok`; otherwise as `try_read`. Wait-free. */
static inline latenz_icc_result latenz_icc_pool_try_take(latenz_icc_pool* self,
                                                         const void** message, uint32_t* items) {
  return licc_pool_hold(self, message, items, licc_pool_look(self));
}
/* The same as soon as it is there. */
static inline latenz_icc_result latenz_icc_pool_take(latenz_icc_pool* self, const void** message,
                                                     uint32_t* items,
                                                     const latenz_icc_deadline* deadline) {
  return licc_pool_hold(self, message, items, licc_pool_await_message(self, deadline));
}
/* Gives the block of a message back that was taken: `ok`, `empty` if it is not held. Wait-free. */
static inline latenz_icc_result latenz_icc_pool_release(latenz_icc_pool* self,
                                                        const void* message) {
  const size_t offset = (uintptr_t)message - (uintptr_t)self->endpoint.memory;
  uint32_t i;
  for (i = 0; i < self->class_count; ++i) {
    const licc_pool_class* const its = &self->classes[i];
    const size_t behind = offset - its->offset;
    if (offset >= its->offset && behind / its->block_bytes < its->blocks) {
      const uint32_t block = its->first + (uint32_t)(behind / its->block_bytes);
      return behind % its->block_bytes == 0 && licc_pool_give_back(self, block) ? LATENZ_ICC_OK
                                                                                : LATENZ_ICC_EMPTY;
    }
  }
  return LATENZ_ICC_EMPTY;
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND */

#endif
