// Counters of each thread: a block of memory that holds all counters of the process once more, at a distance from the first
// block. A thread that ends leaves its counts in its block, and the next one goes on with it.
#pragma once

#include <stdint.h>

namespace assay::fields {

constexpr uint64_t kBlockBytes = 256 << 20; // address space; memory is what is touched

// The first block, and whether it could be had.
bool create_blocks();
uint8_t *first_block();

// The thread that calls gets a block of its own, if there is memory.
void take_block();

// Calls f(block) for each block but the first.
void each_block(void (*f)(const uint8_t *block, void *data), void *data);

// All threads count in the first block from now on.
void share_first_block();

// In the child of a fork: the one thread counts in the first block, all counters are zero.
void reset_blocks_in_child(uint64_t used_bytes);

} // namespace assay::fields
