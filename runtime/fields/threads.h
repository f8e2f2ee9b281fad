// Counters of each thread: a block of memory that holds all counters of the process once more, at a distance from the first
// block. A thread that ends leaves its counts in its block, and the next one goes on with it.
//
// In the sampling block all counters are negative. A thread that is sent there reports each stretch of code that it executes,
// until its window is full.
#pragma once

#include <stdint.h>

#include "runtime/fields/windows.h"

namespace assay::fields {

constexpr uint64_t kBlockBytes = 256 << 20; // address space; memory is what is touched

struct ThreadBlock {
  uint64_t distance; // read by instrumented code
  uint64_t own;      // the distance of its block; 0: the first one
  uint32_t owner;    // thread id
  uint32_t in_hook;  // 1 while it reports
  Window *window;    // null: it has never sampled
};

// The blocks; false if there is no memory.
bool create_blocks();
uint8_t *first_block();

// The thread that calls gets a block of its own, if there is memory.
void take_block();
ThreadBlock &this_block();

// Calls f(block) for each block that threads count in but the first.
void each_block(void (*f)(const uint8_t *block, void *data), void *data);

// The first so many bytes of the sampling block can be used.
void extend_sampling_block(uint64_t begin, uint64_t end);
// Where the counter lies in a block, if it lies in the sampling block.
bool find_in_sampling_block(const uint64_t *counter, uint64_t &offset);
bool is_sampling(const ThreadBlock &thread);
// Every thread samples a window; from the next stretch on that it executes.
void begin_windows();
void end_window(ThreadBlock &thread);
// No thread samples any more, and none will.
void forbid_windows();

// All threads count in the first block from now on.
void share_first_block();

// In the child of a fork: the one thread counts in the first block, all counters are zero.
void reset_blocks_in_child(uint64_t used_bytes);

} // namespace assay::fields
