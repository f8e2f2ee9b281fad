// What no longer fits the 32-bit halves of counters. A walk of the live objects takes 2^31 from
// every half that has reached it, long before it can wrap, and keeps it here until the object ends.
#pragma once

#include "runtime/heap/counters.h"

namespace assay::heap {

bool create_spill();

// Looks at the counters of a block and takes from those that are half full. Only on the helper
// thread.
void spill_counters(const void *block, uint64_t size);

// Adds what was taken from the block's counters; and forgets it, if asked.
void add_spilled(const void *block, uint64_t size, Counts &counts, bool forget);

// The block's counters have moved (realloc): what was taken from them goes along.
void move_spilled(const void *from, uint64_t from_size, const void *to);

// In the child of a fork.
void forget_spill();

} // namespace assay::heap
