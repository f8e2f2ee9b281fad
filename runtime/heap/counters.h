// The access counters: 64 bytes of program to 8 bytes of shadow, reads in the low half, writes in
// the high half; or as enum AssayCounters (abi/sites.h) says. Geometry in abi/shadow.h; the increments
// themselves are inline in instrumented code.
//
// Source: heap-profiler.txt, "Shadow Memory".
#pragma once

#include "abi/shadow.h"
#include "abi/sites.h"
#include "runtime/core/tool_callbacks.h"
#include "runtime/heap/stripes.h"

// __assay_counters_base, reached without the global offset table.
extern "C" __attribute__((visibility("hidden"))) uint64_t counters_base;

namespace assay::heap {

extern constinit UnitMode units; // a sum of enum AssayCounters

// Maps the whole span of the shadow. False if the kernel refuses: then it is mapped as it is
// touched, and nothing is recorded. Where something else lies at its fixed base, it is mapped
// elsewhere, which only code with a dynamic base finds.
bool map_counters();
bool counters_are_elsewhere();

// In the child of a fork: all counters are zero again.
void reset_counters_in_child();

// Bytes of program that share a counter, and how many such blocks [start, start + size) lies in.
uint64_t block_bytes();
uint64_t blocks_spanned(const void *start, uint64_t size);

struct Counts {
  uint64_t reads, writes;
  uint64_t blocks_spanned, blocks_touched;
  uint64_t touched_bytes; // of the range, that lie in touched blocks
};

// How an object's counters are read.
enum class ReadMode {
  kTake, // and zeroed: the object has ended
  kKeep, // the object goes on
  kShare, // the object goes on, and its first and last blocks may be others' too: the first that is met
          // in a walk gets their counts (shared_blocks.h)
};

Counts count_blocks(const void *start, uint64_t size, ReadMode look);
void zero_blocks(const void *start, uint64_t size);

// The counter of an object that lies in one block, in the layout and the single stripe that are
// usual; else null. What is done for most objects is done without a call.
inline uint64_t *only_counter(const void *start, uint64_t size) {
  static_assert(ASSAY_COUNTERS_HALVES == 0);
  const uint64_t at = (uint64_t)start, in_block = at % ASSAY_BLOCK_BYTES;
  if (units.mode & ASSAY_COUNTERS_LAYOUT || used_stripes > 1 ||
      size - 1 >= ASSAY_BLOCK_BYTES - in_block)
    return nullptr;
  return (uint64_t *)(((at - in_block) >> ASSAY_COUNTERS_SHIFT) + counters_base);
}

// Sums up the counters of the blocks that [start, start + size) lies in. Costs what was touched.
inline Counts count_accesses(const void *start, uint64_t size, ReadMode look) {
  uint64_t *counter = only_counter(start, size);
  if (!counter || look == ReadMode::kShare)
    return count_blocks(start, size, look);
  const uint64_t value = *counter;
  if (value && look == ReadMode::kTake)
    *counter = 0;
  return {(uint32_t)value, value >> 32, 1, value != 0, value ? size : 0};
}

inline void zero_counters(const void *start, uint64_t size) {
  if (uint64_t *counter = only_counter(start, size))
    *counter = 0;
  else
    zero_blocks(start, size);
}

// The same, but for blocks that the range only reaches into.
void zero_own_counters(const void *start, uint64_t size);

// Calls f for each block of [start, end) that was accessed, once for each stripe that counted in it.
struct BlockCount {
  uint64_t address, reads, writes;
  bool is_first; // of its stripes
};
void for_each_counted(uint64_t start, uint64_t end,
                      void (*f)(void *context, const BlockCount &block), void *context);

// Gives the counts of one place to another of at most to_size bytes, block by block; the source is
// zeroed. What has no counterpart goes to the last block.
void move_counters(const void *from, uint64_t from_size, const void *to, uint64_t to_size);

} // namespace assay::heap
