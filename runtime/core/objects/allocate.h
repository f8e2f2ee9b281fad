// The one way in and out of the heap, behind every allocation function and operator.
#pragma once

#include <stddef.h>

namespace assay {

// Frame of the interposed function: stacks begin at its caller.
#define ASSAY_FRAME __builtin_frame_address(0)

// Which function the program called: the one of the same name below makes the block.
enum class AllocationFunction { kMalloc, kCalloc, kMemalign, kAlignedAlloc, kPosixMemalign };

// As malloc; align is a power of two for the functions that take one, else 0. errno as the allocator
// below sets it.
void *allocate(size_t size, size_t align, AllocationFunction via, const void *frame);
void *reallocate(void *block, size_t size, const void *frame);
void release(void *block, const void *frame);
size_t usable_size(void *block);

// The block, if it is one of ours, is a pool's memory from now on, and no object. Inside a ReentrancyGuard
// section, while recording.
void become_pool_memory(void *block);

} // namespace assay
