// Blocks with headers. A block is ours if the chunk map says so, or the side table, where there is
// one; all others go unchanged to the allocator below, so that memory may come from, and go to, code
// that never heard of us.
//
// Before the runtime is ready, and inside it (thread `busy`), allocations pass through without a
// header. The very first ones may come while dlsym is looking for the real functions: those get
// memory from a small array that is never given back.

#include "runtime/core/objects/allocate.h"

#include <errno.h>
#include <string.h>

#include "runtime/core/objects/objects.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/real_functions.h"
#include "runtime/core/system/thread.h"

extern "C" __attribute__((weak)) void *__libc_malloc(size_t size); // glibc's, whatever malloc is

namespace assay {

// While dlsym runs: a bump allocator over static bytes.
alignas(16) constinit char early_bytes[kEarlyBytes];

namespace {

constinit size_t early_used;

size_t early_size(const void *block) {
  return ((const size_t *)block)[-2];
}

void *early_allocate(size_t size) {
  size_t at = __atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  if (at + size + 16 > sizeof early_bytes)
    return nullptr;
  *(size_t *)(early_bytes + at) = size;
  return early_bytes + at + 16;
}

} // namespace

void *real_allocate(size_t size, size_t align, AllocationFunction via) {
  void *block = nullptr;
  switch (via) {
  case AllocationFunction::kMalloc: return real.malloc(size);
  case AllocationFunction::kCalloc: return real.calloc(1, size);
  case AllocationFunction::kMemalign:
    if (real.memalign)
      return real.memalign(align, size);
    break;
  case AllocationFunction::kAlignedAlloc:
    if (real.aligned_alloc)
      return real.aligned_alloc(align, size);
    break;
  case AllocationFunction::kPosixMemalign:
    if (real.posix_memalign)
      return real.posix_memalign(&block, align, size) == 0 ? block : nullptr;
    break;
  }
  errno = ENOMEM; // a program whose own malloc has no such function
  return nullptr;
}

namespace {

void *plain_allocate(size_t size, size_t align, AllocationFunction via) {
  if (is_resolving_functions()) // the program's heap stays as it is
    return early_allocate(size);
  if (!real.free)
    find_real_functions();
  if (!runtime.finished)
    count_loss_quietly(this_thread.busy ? ASSAY_LOSS_in_runtime : ASSAY_LOSS_before_start, 1);
  return real_allocate(size, align, via);
}

// The bytes to ask for. Neighbours must lie at one distance, as they do natively: processors fetch ahead of a walk with
// a constant stride, and a walk over objects at two alternating distances is ten times slower. glibc's chunks are
// multiples of 16 with 8 bytes of its own; what begins on a multiple of 32 (or 64) lies evenly if they are multiples of
// that. False if there is no such number.
bool whole_size(size_t size, size_t room, size_t &whole) {
  constexpr size_t kAllocatorBytes = 8;
  size_t step = size < kLargeSize ? kChunkAlign : 2 * kChunkAlign;
  if (__builtin_add_overflow(size, room + kAllocatorBytes + step - 1, &whole))
    return false;
  whole = (whole & ~(step - 1)) - kAllocatorBytes;
  return true;
}

// Bytes asked for beyond the program's, at least.
size_t room_for(size_t size, size_t align) {
  if (align > kChunkAlign)
    return align;
  return size < kLargeSize ? kChunkOverhead : kChunkOverhead + kChunkAlign;
}

// Where the program's bytes begin in a block from below.
char *place(char *base, size_t size, size_t align) {
  if (align > kChunkAlign)
    return base + align;
  uintptr_t step = size < kLargeSize ? kChunkAlign : 2 * kChunkAlign;
  return (char *)(((uintptr_t)base + sizeof(ChunkHeader) + step - 1) & ~(step - 1));
}

// glibc's blocks need no room but for the header, mostly: all chunks are multiples of 32 bytes, so
// where one begins on a multiple of 32, the next ones do. A block that does not is set aside for
// good, since glibc would hand it out again at once; one of 16 bytes more takes its place, behind
// which blocks lie evenly again. Where that has happened often, room is asked for each time, and so
// it is of other allocators, whose blocks may lie oddly always.
constexpr uint32_t kMaxSetAside = 256;
constinit uint32_t set_aside;

bool gives_even_blocks() {
  return real.malloc == &__libc_malloc && set_aside < kMaxSetAside;
}

char *allocate_tightly(size_t size, AllocationFunction via) {
  size_t whole;
  whole_size(size, sizeof(ChunkHeader), whole); // there is: kLargeSize is far from overflow
  char *base = (char *)real_allocate(whole, 0, via);
  if (__builtin_expect((uintptr_t)base % kChunkAlign == 0, 1))
    return base;
  __atomic_fetch_add(&set_aside, 1, __ATOMIC_RELAXED);
  char *other = (char *)real_allocate(whole + kChunkAlign / 2, 0, via);
  if (!other)
    real.free(base);
  return other;
}

char *allocate_base(size_t size, size_t align, AllocationFunction via, size_t whole) {
  if (align <= kChunkAlign) { // a header gives as much
    if (align)
      via = AllocationFunction::kMalloc;
    if (size < kLargeSize && gives_even_blocks())
      return allocate_tightly(size, via);
  }
  return (char *)real_allocate(whole, align, via);
}

void write_header(void *block, ChunkHeader header, void *base) {
  header.to_base = (uint32_t)((char *)block - (char *)base);
  header.check = chunk_check(block, header);
  *header_of(block) = header;
  runtime.chunks.insert(block);
}

void free_base(void *block) {
  ChunkHeader *header = header_of(block);
  char *base = (char *)block - header->to_base;
  header->check = 0;
  real.free(base);
}

// No tool asks when the object ends: it is the allocator's own block, and the tools hear of it once.
void *allocate_untracked(size_t size, size_t align, AllocationFunction via, TypeId type,
                         const void *frame) {
  void *block = real_allocate(size, align, via);
  if (block && runtime.wants_allocations)
    publish_allocation({block, timeless_header(size, context_of(frame, type))});
  return block;
}

void *reallocate_untracked(void *block, size_t size, const void *frame) {
  void *fresh = real.realloc(block, size);
  if (fresh && runtime.wants_allocations)
    publish_allocation({fresh, timeless_header(size, context_of(frame, kNoType))});
  return fresh;
}

// Without a header: the allocator's own block, and an entry in the side table.
void *allocate_with_side_entry(size_t size, size_t align, AllocationFunction via, TypeId type,
                               const void *frame) {
  void *block = real_allocate(size, align, via);
  if (block)
    begin_side_object(runtime.side, block, size, nullptr, context_of(frame, type));
  return block;
}

} // namespace

void *allocate_followed(size_t size, size_t align, AllocationFunction via, const void *frame) {
  TypeId type = take_next_type();
  if (!may_record())
    return plain_allocate(size, align, via);
  ReentrancyGuard busy;
  if (!runtime.wants_objects)
    return allocate_untracked(size, align, via, type, frame);
  size_t whole;
  if (!whole_size(size, room_for(size, align), whole) || (size >> 48) ||
      (align >> 31)) // the allocator below does as it likes
    return real_allocate(size, align, via);
  if (runtime.side.exists())
    return allocate_with_side_entry(size, align, via, type, frame);
  char *base = allocate_base(size, align, via, whole);
  if (!base)
    return nullptr;
  char *block = place(base, size, align);
  write_header(block, new_header(size, context_of(frame, type)), base);
  publish_allocation({block, *header_of(block)});
  this_thread.last_block = block;
  return block;
}

void release_followed(void *block, const void *frame) {
  if (!block || is_early(block))
    return;
  if (runtime.chunks.owns(block)) {
    if (may_record()) {
      ReentrancyGuard busy;
      end_object(block, *header_of(block), frame);
    }
    runtime.chunks.remove(block);
    free_base(block);
    return;
  }
  if (may_record() && runtime.side.exists()) {
    ReentrancyGuard busy;
    SideObject object;
    if (runtime.side.take(block, object))
      end_object(block, object.header, frame);
  }
  if (!real.free)
    find_real_functions();
  real.free(block);
}

namespace {

void *reallocate_with_side_entry(void *block, size_t size) {
  SideObject object;
  bool known = may_record() && !(size >> 48) && runtime.side.exists();
  ReentrancyGuard busy;
  known = known && runtime.side.take(block, object);
  void *fresh = real.realloc(block, size);
  if (!known)
    return fresh;
  if (!fresh && size) {
    SideObject unseen;
    runtime.side.insert(object, &unseen);
    return nullptr;
  }
  if (size == 0) {
    end_object(block, object.header, nullptr);
    return fresh;
  }
  uint64_t old_size = object.header.size;
  object.block = fresh;
  object.header.size = size;
  object.header.check = chunk_check(fresh, object.header);
  insert_side_object(runtime.side, object);
  if (!(object.header.flags & kPoolMemory))
    publish_realloc({fresh, object.header, block, old_size, fresh != block, false});
  if (this_thread.last_block == block)
    this_thread.last_block = fresh;
  return fresh;
}

// As glibc: free; another allocator may hand out a small block of its own instead.
void *reallocate_to_nothing(void *block, const void *frame) {
  char *base = (char *)block - header_of(block)->to_base;
  if (may_record()) {
    ReentrancyGuard busy;
    end_object(block, *header_of(block), frame);
  }
  runtime.chunks.remove(block);
  header_of(block)->check = 0;
  return real.realloc(base, 0);
}

} // namespace

void *reallocate_followed(void *block, size_t size, const void *frame) {
  if (!block)
    return allocate(size, 0, AllocationFunction::kMalloc, frame);
  take_next_type();
  if (is_early(block)) {
    size_t old = early_size(block);
    void *fresh = allocate(size, 0, AllocationFunction::kMalloc, frame);
    return fresh ? memcpy(fresh, block, old < size ? old : size) : nullptr;
  }
  if (!runtime.chunks.owns(block)) {
    if (!may_record() || runtime.wants_objects)
      return reallocate_with_side_entry(block, size);
    ReentrancyGuard busy;
    return reallocate_untracked(block, size, frame);
  }
  if (size == 0)
    return reallocate_to_nothing(block, frame);
  ReentrancyGuard busy;
  ChunkHeader header = *header_of(block);
  size_t old_size = header.size, old_to_base = header.to_base;
  size_t room = room_for(size, 0), whole;
  if (room < old_to_base)
    room = old_to_base;
  char *old_base = (char *)block - old_to_base;
  if (!whole_size(size, room, whole) || (size >> 48)) {
    errno = ENOMEM;
    return nullptr;
  }
  bool was_watched = runtime.chunks.is_watched(block);
  runtime.chunks.remove(block);
  char *base = (char *)real.realloc(old_base, whole);
  if (!base) {
    runtime.chunks.insert(block);
    if (was_watched)
      runtime.chunks.watch(block);
    return nullptr;
  }
  char *fresh = place(base, size, 0), *copied_to = base + old_to_base;
  if (fresh != copied_to)
    memmove(fresh, copied_to, old_size < size ? old_size : size);
  header.size = size;
  write_header(fresh, header, base);
  if (was_watched && fresh == block)
    runtime.chunks.watch(fresh);
  if (is_recording() && !busy.nested() && !(header.flags & kPoolMemory))
    publish_realloc({fresh, *header_of(fresh), block, old_size, fresh != block, was_watched});
  if (this_thread.last_block == block)
    this_thread.last_block = fresh;
  return fresh;
}

size_t usable_size(void *block) {
  if (!block)
    return 0;
  if (is_early(block))
    return early_size(block);
  if (runtime.chunks.owns(block))
    return header_of(block)->size;
  SideObject object;
  if (!this_thread.busy && runtime.side.exists()) {
    ReentrancyGuard busy;
    if (runtime.side.find(block, object))
      return object.header.size;
  }
  return real.malloc_usable_size ? real.malloc_usable_size(block) : 0;
}

void become_pool_memory(void *block) {
  auto mark = [block](ChunkHeader &header) {
    if (!(header.flags & kPoolMemory))
      publish_pool_memory({block, header});
    header.flags |= kPoolMemory;
  };
  SideObject object;
  if (runtime.chunks.owns(block)) {
    mark(*header_of(block));
  } else if (runtime.side.find(block, object)) {
    mark(object.header);
    runtime.side.update(object);
  }
}

} // namespace assay
