// Touched lines as bytes, small where programs are regular. Numbers are LEB128 (7 bits a byte, low ones
// first). A group is 64 consecutive lines: group g holds lines 64 g to 64 g + 63, line l the addresses
// from l times the bytes of a line on.
//
// Lines of up to 8 snapshots, the tail of WorkingSetLines: groups in ascending order, each
//
//   number  how far its number is beyond that of the group before and its repeats (at first: beyond 0)
//   number  n: this group and n more after it are alike
//   byte    bit i: in snapshot i the lines differ from those of snapshot i - 1 (of snapshot 0: from none)
//   u64     for each of these bits, the lowest first: the touched lines, the group's first in bit 0
//
// Owners, the tail of WorkingSetOwners: runs in ascending order of their first lines, each
//
//   number  how far its first line is beyond that of the run before (at first: beyond 0)
//   number  n: lines in the run, at most ASSAY_MOST_OWNED
//   number  context of the allocation that they belong to
//
// Later runs win over earlier ones that they overlap.
#pragma once

#include <stdint.h>

#define ASSAY_GROUP_LINES 64
#define ASSAY_MOST_OWNED (1 << 20)

// The clock of snapshots.
enum AssayTimeUnit {
  ASSAY_TIME_WALL = 0,     // microseconds
  ASSAY_TIME_CPU = 1,      // microseconds of the process, the profiler's helper left out
  ASSAY_TIME_ACCESSES = 2, // executed accesses of instrumented code
  ASSAY_TIME_MARKS = 3,    // calls of assay_mark
};

enum AssayRegionKind {
  ASSAY_REGION_FILE = 0,      // a mapped file
  ASSAY_REGION_ANONYMOUS = 1, // memory of nobody in particular
  ASSAY_REGION_STACK = 2,     // of a thread
  ASSAY_REGION_BREAK = 3,     // the heap of brk
};

enum { ASSAY_NUMBER_BYTES = 10 }; // the most that a number takes

// Writes a number and returns what follows it.
static inline uint8_t *assay_put_number(uint8_t *to, uint64_t n) {
  for (; n >= 128; n >>= 7)
    *to++ = (uint8_t)(n | 128);
  *to++ = (uint8_t)n;
  return to;
}

// Reads a number of the bytes up to `end` and returns what follows it; null if there is none, or
// one of more than 64 bits.
static inline const uint8_t *assay_get_number(const uint8_t *from, const uint8_t *end,
                                              uint64_t *n) {
  *n = 0;
  for (unsigned shift = 0; shift < 64 && from < end; shift += 7) {
    *n |= (uint64_t)(*from & 127) << shift;
    if (*from++ < 128)
      return from;
  }
  return 0;
}
