// What those who write values, or skeletons, and those who read them agree on. C11 and C++.
//
// A file of values is the magic and pieces, each with so many bytes behind it: a stream's
// beginning, what its thread logged, its end. The stream of a signal handler stands within the one
// that it interrupted. Numbers are little-endian.
#pragma once

#include <stdint.h>

#define VALUES_MAGIC "ASSAYVAL"

enum {
  // u64: the base of the thread's storage; then of each file, from number 0, where it lies less
  // where it was linked for.
  PIECE_STREAM = 1,
  PIECE_LOGGED = 2,
  PIECE_ENDED = 3, // the thread went on
  PIECE_CUT = 4,   // it is not known to have
};

struct piece {
  uint32_t kind, thread;
  uint64_t bytes;
};

// What an access is beside its address, in 64 bits: the number of the file, the instruction's
// address in it, bytes, and in the lowest bit whether it writes.
enum { ACCESS_FILE_BITS = 9, ACCESS_PC_BITS = 40, ACCESS_SIZE_BITS = 14 };
enum {
  ACCESS_SIZE_AT = 1,
  ACCESS_PC_AT = ACCESS_SIZE_AT + ACCESS_SIZE_BITS,
  ACCESS_FILE_AT = ACCESS_PC_AT + ACCESS_PC_BITS
};
