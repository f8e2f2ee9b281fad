// Counters whose 32-bit halves wrap: each check of the live objects watches every half that has
// become large, and notes each time that it has wrapped.
#pragma once

#include "runtime/core/objects/chunk.h"
#include "runtime/heap/counters.h"

namespace assay::heap {

bool create_watch();

// Can the counters of this program wrap at all?
bool can_wrap();

// Microseconds until the next look at all live objects, after one that took so many.
uint64_t next_check_after(uint64_t took_us);

// Can counters of the object be watched? Of most objects the chunk map knows.
bool may_have_wrapped(const void *block, const ChunkHeader &header);

// Checks the counters of a block: those that are large are watched from now on, and where one that is watched has
// wrapped, that is noted. On the helper thread, or at the end of the block.
void watch_counters(const void *block, uint64_t size);

// May one of the counters that add up to this be large?
bool may_be_large(const Counts &counts);
// Is a counter of these bytes of program large? Far cheaper than to look at the objects that lie there.
bool has_large_counter(uint64_t begin, uint64_t end);

// Adds what the watched counters of the block have wrapped, as of the last look; forgets it, if asked.
void add_wrapped(const void *block, uint64_t size, Counts &counts, bool forget);

// The block's counters have moved (realloc): what they have wrapped goes along.
void move_wrapped(const void *from, uint64_t from_size, const void *to);

// In the child of a fork.
void reset_watch_in_child();

} // namespace assay::heap
