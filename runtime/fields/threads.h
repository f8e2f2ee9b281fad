// Counters of each thread: a block of memory that holds all counters of the process once more, at a
// distance from the first block. A thread that ends leaves its counts in its block, and the next
// one goes on with it.
//
// From time to time all threads sample, for a round: each reports the stretches of code that it
// executes until its windows are full.
#pragma once

#include <stdint.h>

#include "runtime/fields/windows.h"

namespace assay::fields {

constexpr uint64_t kBlockBytes = 256 << 20; // address space; memory is what is touched

struct ThreadBlock {
  uint64_t own;     // the distance of its block; 0: the first one
  uint32_t owner;   // thread id
  uint32_t in_hook; // 1 while it reports
  uint32_t joined;  // the last round that it reported in
  uint32_t left;    // the last round of which it has reported enough
  Window *window;   // null: it has never sampled
};

// The blocks; false if there is no memory.
bool create_blocks();
uint8_t *first_block();
// Behind the counters of the first block, as of each: where what has no place in them may be counted, and is forgotten.
uint8_t *nowhere();

// The thread that calls gets a block of its own, if there is memory.
void take_block();
ThreadBlock &this_block();

// Calls f(block) for each block that threads count in but the first.
void each_block(void (*f)(const uint8_t *block, void *data), void *data);

// The code of all units asks to report from now on (runtime/fields/units.h), until end_round(), or
// until each thread that joined has left. What it finds counts `weight` times.
void begin_round(uint64_t weight);
void end_round();
bool is_in_round();
uint32_t number_of_round();
uint64_t weight_of_round();
// Whether the thread samples in this round. It then has a window.
bool joins_round(ThreadBlock &thread);
void leave_round(ThreadBlock &thread);
// No round is, and none will be.
void forbid_rounds();

// In the child of a fork: the one thread counts in the first block, all counters are zero.
void reset_blocks_in_child(uint64_t used_bytes);

} // namespace assay::fields
