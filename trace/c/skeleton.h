// What skeletons are written in. A skeleton is what is left of a function when only that is kept
// from which its memory accesses follow. It takes what the function logged, in the order in which
// it did, and makes the same accesses:
//
//   IN(bytes)                     the next value that was logged
//   OUT(pc, kind, bytes, address) an access of the instruction at pc: kind 'R' or 'W'
//
// It begins at one of its starts (`case` labels: an entry, or behind a call), and STOPs at the next
// call or return. Variables have the names of registers. C11, for any compiler and machine whose
// numbers are little-endian.
#pragma once

// gcc 12 follows ranges of values through large functions for hours.
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("no-tree-vrp")
#endif

#include "micro_ops.h"
#include "values_format.h"

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

struct access {
  uint64_t address, what; // values_format.h
};
#define ACCESS_BITS(a, at, bits) ((a)->what >> (at) & (((uint64_t)1 << (bits)) - 1))
#define ACCESS_FILE(a) ((unsigned)ACCESS_BITS(a, ACCESS_FILE_AT, ACCESS_FILE_BITS))
#define ACCESS_PC(a) ACCESS_BITS(a, ACCESS_PC_AT, ACCESS_PC_BITS)
#define ACCESS_BYTES(a) ((unsigned)ACCESS_BITS(a, ACCESS_SIZE_AT, ACCESS_SIZE_BITS))
#define ACCESS_WRITES(a) ((unsigned)((a)->what & 1))

// Takes accesses in the order in which the thread made them; who wants to simulate something writes
// another one than main.c's.
void take(uint32_t thread, const struct access *accesses, uint64_t count);

enum { ACCESSES = 1024, ACCESSES_AT_ONCE = 1024 };

// What one thread logged, or one run of a signal handler.
struct stream {
  const uint8_t *in, *end; // what is there of it
  struct access *out;
  struct access *full;  // where `out` is to be emptied
  uint64_t fs;          // base of the thread's storage
  const uint64_t *bias; // where each file lies, less where it was linked for; by number
  uint32_t thread;
  int has_ended;   // nothing more comes, and the thread went on
  uint64_t behind; // accesses since then
  jmp_buf left;    // the skeleton cannot go on
  uint8_t padded[2048 + 16];
};

// Makes room for accesses.
void empty(struct stream *s);
// Gets more of the stream where it is used up; does not return where it is cut there: it is not
// known whether the thread went on.
void more(struct stream *s);
// The values make no sense: says so and exits.
_Noreturn void damaged(const char *what);
// The next value, behind which nothing of what is there is left.
uint64_t last_in(struct stream *s, unsigned bytes);

// Where a function begins whose number was logged.
struct start {
  uint32_t number, bytes; // that are there with the number: values of registers
  int start;
  void (*skeleton)(struct stream *s, int start);
};
extern const struct start starts[];
extern const uint64_t starts_count;

// ---- in skeletons

#define FILE_NUMBER(number) enum { file_number = number }
// Variables of a skeleton: copies of the stream's, which compilers keep in registers.
#define BEGIN                                                                                      \
  const uint8_t *in = s->in, *end = s->end;                                                        \
  struct access *out = s->out, *full = s->full;                                                    \
  const uint64_t fs = s->fs, bias = s->bias[file_number];                                          \
  (void)fs, (void)bias
#define SAVE (s->in = in, s->out = out)
#define LOAD (in = s->in, end = s->end, out = s->out, full = s->full)
#define ROOM                                                                                       \
  do                                                                                               \
    if (out >= full) {                                                                             \
      SAVE;                                                                                        \
      empty(s);                                                                                    \
      LOAD;                                                                                        \
    }                                                                                              \
  while (0)
// A start: whether the thread went on behind it is known when there is more.
#define START(number)                                                                              \
  case number:                                                                                     \
    if (in == end) {                                                                               \
      SAVE;                                                                                        \
      more(s);                                                                                     \
      LOAD;                                                                                        \
    }
#define STOP                                                                                       \
  do {                                                                                             \
    SAVE;                                                                                          \
    return;                                                                                        \
  } while (0)

static inline uint64_t number_at(const uint8_t *at, unsigned bytes) {
  uint8_t one;
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  switch (bytes) {
  case 1: memcpy(&one, at, 1); return one;
  case 2: memcpy(&two, at, 2); return two;
  case 4: memcpy(&four, at, 4); return four;
  default: memcpy(&eight, at, 8); return eight;
  }
}
static inline uint64_t next_in(struct stream *s, const uint8_t **in, const uint8_t **end,
                               struct access **out, struct access **full, unsigned bytes) {
  if ((uint64_t)(*end - *in) > bytes) {
    const uint64_t value = number_at(*in, bytes);
    *in += bytes;
    return value;
  }
  s->in = *in, s->out = *out;
  const uint64_t value = last_in(s, bytes);
  *in = s->in, *end = s->end, *out = s->out, *full = s->full;
  return value;
}
// The next value; it stays the next one.
static inline uint64_t peek_in(struct stream *s, const uint8_t *in, const uint8_t *end,
                               struct access *out, unsigned bytes) {
  uint8_t padded[8] = {0};
  const uint64_t left = (uint64_t)(end - in);
  if (left == 0) {
    s->in = in, s->out = out;
    longjmp(s->left, 1);
  }
  memcpy(padded, in, left < bytes ? left : bytes);
  return number_at(padded, bytes);
}
#define PEEK(bytes) peek_in(s, in, end, out, bytes)
#define IN(bytes) next_in(s, &in, &end, &out, &full, bytes)

#define OUT(pc, kind, bytes, to)                                                                   \
  (out->address = (to),                                                                            \
   out->what = (uint64_t)file_number << ACCESS_FILE_AT | (uint64_t)(pc) << ACCESS_PC_AT |          \
               (bytes) << ACCESS_SIZE_AT | ((kind) == 'W'),                                        \
   out++)

// Of a function whose accesses follow from values of blocks: all that belongs to a number is there.
#define VALUE(which) number_at(in + 8 * (which), 8)
#define TAKEN(values)                                                                              \
  do {                                                                                             \
    in += 8 * (values);                                                                            \
    SAVE;                                                                                          \
    if (in == end)                                                                                 \
      more(s);                                                                                     \
    return;                                                                                        \
  } while (0)
