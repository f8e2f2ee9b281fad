// Blocks with headers: malloc and its family. A block is ours if the chunk map says so; all others
// go unchanged to the allocator below, so that memory may come from, and go to, code that never
// heard of us.
//
// Before the runtime is ready, and inside it (thread `busy`), allocations pass through without a
// header. The very first ones may come while dlsym is looking for the real functions: those get
// memory from a small array that is never given back.

#include <errno.h>
#include <string.h>

#include "runtime/core/allocate.h"
#include "runtime/core/interpose.h"
#include "runtime/core/losses.h"
#include "runtime/core/runtime.h"
#include "runtime/core/thread.h"

namespace assay {
namespace {

// While dlsym runs: a bump allocator over static bytes.
alignas(16) constinit char early_bytes[16 << 10];
constinit size_t early_used;

bool is_early(const void *block) {
  return block >= early_bytes && block < early_bytes + sizeof early_bytes;
}

void *early_allocate(size_t size) {
  size_t at = __atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  if (at + size + 16 > sizeof early_bytes)
    return nullptr;
  *(size_t *)(early_bytes + at) = size;
  return early_bytes + at + 16;
}

void *plain_allocate(size_t size, size_t align, bool zeroed) {
  if (!real.free) {
    static constinit bool looking = false;
    if (looking)
      return early_allocate(size);
    looking = true;
    find_real_functions();
    looking = false;
  }
  if (!runtime.finished && !this_thread.busy)
    count_loss_quietly(ASSAY_LOSS_before_start, 1);
  if (zeroed)
    return real.calloc(1, size);
  return align ? real.memalign(align, size) : real.malloc(size);
}

// Where the program's bytes begin in a block from below.
char *place(char *base, size_t align) {
  if (align > kChunkAlign)
    return base + align;
  return (char *)(((uintptr_t)base + sizeof(ChunkHeader) + kChunkAlign - 1) & ~(kChunkAlign - 1));
}

void write_header(void *block, ChunkHeader header, void *base) {
  header.to_base = (uint32_t)((char *)block - (char *)base);
  header.check = chunk_check(block, header);
  *header_of(block) = header;
  runtime.chunks.insert(block);
}

uint32_t context_of(const void *frame, uint32_t type) {
  Stack stack;
  unwind(frame, runtime.options.depth, stack);
  return runtime.depot.intern(stack, type);
}

uint32_t take_next_type() {
  uint32_t type = __assay_next_type;
  __assay_next_type = 0;
  return type;
}

void free_base(void *block) {
  ChunkHeader *header = header_of(block);
  char *base = (char *)block - header->to_base;
  header->check = 0;
  real.free(base);
}

} // namespace

void *allocate(size_t size, size_t align, bool zeroed, const void *frame) {
  uint32_t type = take_next_type();
  if (!runtime.recording || this_thread.busy)
    return plain_allocate(size, align, zeroed);
  Busy busy;
  size_t room = align > kChunkAlign ? align : kChunkOverhead;
  size_t whole;
  if (__builtin_add_overflow(size, room, &whole) || (size >> 48) ||
      (align >> 31)) // the allocator below does as it likes
    return align ? real.memalign(align, size) : real.malloc(size);
  char *base = (char *)(align > kChunkAlign ? real.memalign(align, whole)
                        : zeroed            ? real.calloc(1, whole)
                                            : real.malloc(whole));
  if (!base)
    return nullptr;
  char *block = place(base, align);
  Moment when = now();
  ChunkHeader header = {};
  header.size = size;
  header.time_us = when.us;
  header.cpu = when.cpu;
  header.context = context_of(frame, type);
  write_header(block, header, base);
  publish_allocation({block, *header_of(block)});
  this_thread.last_block = block;
  return block;
}

void release(void *block, const void *frame) {
  (void)frame;
  if (!block || is_early(block))
    return;
  if (!runtime.chunks.owns(block)) {
    if (!real.free)
      find_real_functions();
    real.free(block);
    return;
  }
  if (runtime.recording && !this_thread.busy) {
    Busy busy;
    publish_free({block, *header_of(block), now(), 0, this_thread.last_block == block});
    runtime.chunks.remove(block);
    free_base(block);
    return;
  }
  runtime.chunks.remove(block);
  free_base(block);
}

void *reallocate(void *block, size_t size, const void *frame) {
  if (!block)
    return allocate(size, 0, false, frame);
  take_next_type();
  if (is_early(block)) {
    size_t old = ((size_t *)block)[-2];
    void *fresh = allocate(size, 0, false, frame);
    return fresh ? memcpy(fresh, block, old < size ? old : size) : nullptr;
  }
  if (!runtime.chunks.owns(block))
    return real.realloc(block, size);
  if (size ==
      0) { // as glibc: free; another allocator may hand out a small block of its own instead
    char *base = (char *)block - header_of(block)->to_base;
    if (runtime.recording && !this_thread.busy) {
      Busy busy;
      publish_free({block, *header_of(block), now(), 0, this_thread.last_block == block});
    }
    runtime.chunks.remove(block);
    header_of(block)->check = 0;
    return real.realloc(base, 0);
  }
  Busy busy;
  ChunkHeader header = *header_of(block);
  size_t old_size = header.size, old_to_base = header.to_base;
  size_t room = old_to_base > kChunkOverhead ? old_to_base : kChunkOverhead, whole;
  char *old_base = (char *)block - old_to_base;
  if (__builtin_add_overflow(size, room, &whole) || (size >> 48)) {
    errno = ENOMEM;
    return nullptr;
  }
  bool was_marked = runtime.chunks.marked(block);
  runtime.chunks.remove(block);
  char *base = (char *)real.realloc(old_base, whole);
  if (!base) {
    runtime.chunks.insert(block);
    return nullptr;
  }
  char *fresh = place(base, 0), *copied_to = base + old_to_base;
  if (fresh != copied_to)
    memmove(fresh, copied_to, old_size < size ? old_size : size);
  header.size = size;
  write_header(fresh, header, base);
  if (was_marked && fresh == block)
    runtime.chunks.mark(fresh);
  if (runtime.recording && !busy.nested())
    publish_realloc({fresh, *header_of(fresh), block, old_size, fresh != block, was_marked});
  if (this_thread.last_block == block)
    this_thread.last_block = fresh;
  return fresh;
}

size_t usable_size(void *block) {
  if (!block)
    return 0;
  if (is_early(block))
    return ((size_t *)block)[-2];
  if (runtime.chunks.owns(block))
    return header_of(block)->size;
  return real.malloc_usable_size(block);
}

namespace {

bool is_power_of_two(size_t n) {
  return n && (n & (n - 1)) == 0;
}

// memalign rounds odd alignments up, as glibc does.
void *allocate_aligned(size_t align, size_t size, const void *frame) {
  size_t rounded = 16;
  while (rounded < align && rounded < ((size_t)1 << 40))
    rounded *= 2;
  return allocate(size, rounded, false, frame);
}

} // namespace
} // namespace assay

using namespace assay;

ASSAY_EXPORT void *malloc(size_t size) {
  return allocate(size, 0, false, ASSAY_FRAME);
}

ASSAY_EXPORT void *calloc(size_t count, size_t size) {
  size_t whole;
  if (__builtin_mul_overflow(count, size, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(whole, 0, true, ASSAY_FRAME);
}

ASSAY_EXPORT void *realloc(void *block, size_t size) {
  return reallocate(block, size, ASSAY_FRAME);
}

ASSAY_EXPORT void *reallocarray(void *block, size_t count, size_t size) {
  size_t whole;
  if (__builtin_mul_overflow(count, size, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocate(block, whole, ASSAY_FRAME);
}

ASSAY_EXPORT void free(void *block) {
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void cfree(void *block) {
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void free_sized(void *block, size_t) {
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void free_aligned_sized(void *block, size_t, size_t) {
  release(block, ASSAY_FRAME);
}

ASSAY_EXPORT void *memalign(size_t align, size_t size) {
  return allocate_aligned(align, size, ASSAY_FRAME);
}

ASSAY_EXPORT void *aligned_alloc(size_t align, size_t size) {
  return allocate_aligned(align, size, ASSAY_FRAME);
}

ASSAY_EXPORT int posix_memalign(void **out, size_t align, size_t size) {
  if (align % sizeof(void *) != 0 || !is_power_of_two(align))
    return EINVAL;
  int saved = errno;
  void *block = allocate(size, align, false, ASSAY_FRAME);
  errno = saved;
  if (!block)
    return ENOMEM;
  *out = block;
  return 0;
}

ASSAY_EXPORT void *valloc(size_t size) {
  return allocate(size, 4096, false, ASSAY_FRAME);
}

ASSAY_EXPORT void *pvalloc(size_t size) {
  size_t whole;
  if (__builtin_add_overflow(size, 4095, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(whole & ~(size_t)4095, 4096, false, ASSAY_FRAME);
}

ASSAY_EXPORT size_t malloc_usable_size(void *block) {
  return usable_size(block);
}

// libc's own strdup calls malloc from code without frame pointers, which would hide its caller.
ASSAY_EXPORT char *strdup(const char *s) {
  size_t size = strlen(s) + 1;
  void *copy = allocate(size, 0, false, ASSAY_FRAME);
  return copy ? (char *)memcpy(copy, s, size) : nullptr;
}

ASSAY_EXPORT char *strndup(const char *s, size_t limit) {
  size_t size = strnlen(s, limit);
  char *copy = (char *)allocate(size + 1, 0, false, ASSAY_FRAME);
  if (!copy)
    return nullptr;
  copy[size] = 0;
  return (char *)memcpy(copy, s, size);
}
