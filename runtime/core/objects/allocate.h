// The one way in and out of the heap, behind every allocation function and operator.
#pragma once

#include <stddef.h>

#include "runtime/core/runtime.h"
#include "runtime/core/system/real_functions.h"

namespace assay {

// Frame of the interposed function: stacks begin at its caller.
#define ASSAY_FRAME __builtin_frame_address(0)

// Which function the program called: the one of the same name below makes the block.
enum class AllocationFunction { kMalloc, kCalloc, kMemalign, kAlignedAlloc, kPosixMemalign };

// The allocator below.
void *real_allocate(size_t size, size_t align, AllocationFunction via);

// What came while dlsym was looking for the real functions, which never goes back.
constexpr size_t kEarlyBytes = 16 << 10;
extern char early_bytes[kEarlyBytes];
inline bool is_early(const void *block) {
  return block >= early_bytes && block < early_bytes + kEarlyBytes;
}

// As malloc; align is a power of two for the functions that take one, else 0. errno as the allocator
// below sets it.
void *allocate_followed(size_t size, size_t align, AllocationFunction via, const void *frame);
void *reallocate_followed(void *block, size_t size, const void *frame);
void release_followed(void *block, const void *frame);
size_t usable_size(void *block);

inline void *allocate(size_t size, size_t align, AllocationFunction via, const void *frame) {
  if (!runtime.ignores_allocations)
    return allocate_followed(size, align, via, frame);
  return via == AllocationFunction::kMalloc ? real.malloc(size) : real_allocate(size, align, via);
}

inline void *reallocate(void *block, size_t size, const void *frame) {
  if (!runtime.ignores_allocations || is_early(block))
    return reallocate_followed(block, size, frame);
  return real.realloc(block, size);
}

inline void release(void *block, const void *frame) {
  if (!runtime.ignores_allocations || is_early(block))
    release_followed(block, frame);
  else
    real.free(block);
}

// The block, if it is one of ours, is a pool's memory from now on, and no object. Inside a ReentrancyGuard
// section, while recording.
void become_pool_memory(void *block);

} // namespace assay
