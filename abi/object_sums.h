// What the objects tool sums up over the objects of a group.
#pragma once

#include <stdint.h>

enum AssayObjectKind {
  ASSAY_OBJECT_HEAP = 1,
  ASSAY_OBJECT_STACK = 2,
};

typedef struct AssayObjectSums {
#define ASSAY_OBJECT_SUM(name, merge, meaning) uint64_t name;
#include "abi/object_sums.def"
} AssayObjectSums;

// Units at one place, over the objects.
typedef struct AssayWordCell {
  uint64_t hotness;  // sum
  uint64_t accessed; // units with an access
  uint64_t
      again; // -fassay-objects=locality: sampled units that had been accessed in the sample before, too
} AssayWordCell;

typedef struct AssayWordRun {
  uint64_t offset;  // of globals: address in the ELF image
  uint64_t units;   // consecutive ones, from there on
  uint64_t hotness; // of each; more than 0
} AssayWordRun;

enum { ASSAY_OBJECT_CELLS = 256, ASSAY_LINE_BYTES = 64 };

// Positions in a line that units of so many bytes have.
static inline uint32_t assay_line_positions(uint64_t unit_bytes) {
  return (uint32_t)(ASSAY_LINE_BYTES / unit_bytes);
}

// The largest size of an object's group: sizes are told apart by 16 bytes up to 256, then four to a doubling.
static inline uint64_t assay_size_class(uint64_t bytes) {
  if (bytes <= 256)
    return (bytes + 15) & ~15ULL;
  uint64_t step = 1ULL << (61 - __builtin_clzll(bytes - 1));
  return (bytes + step - 1) & ~(step - 1);
}

// Units of a cell in a group of this class: a power of two, so that there are no more than ASSAY_OBJECT_CELLS. A class
// of more than 2^39 units has more; its last cell then stands for the rest.
static inline uint32_t assay_cell_units(uint64_t class_bytes, uint64_t unit_bytes) {
  uint64_t units = class_bytes / unit_bytes;
  uint32_t cell = 1;
  while (units / cell > ASSAY_OBJECT_CELLS && cell < 1U << 31)
    cell *= 2;
  return cell;
}

static inline uint64_t assay_merge_add(uint64_t a, uint64_t b) {
  return a + b;
}
static inline uint64_t assay_merge_min(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}
static inline uint64_t assay_merge_max(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

// A set of no objects is all zeros.
static inline void assay_object_sums_add(AssayObjectSums *into, const AssayObjectSums *more) {
  if (!more->count)
    return;
  if (!into->count) {
    *into = *more;
    return;
  }
#define ASSAY_OBJECT_SUM(name, merge, meaning)                                                     \
  into->name = assay_merge_##merge(into->name, more->name);
#include "abi/object_sums.def"
}
