// malloc and its family, by name. What they do is in allocate.cc.
//
// Each function hands on its own frame: stacks begin at its caller. It checks what its name
// promises and nothing else: count * size may overflow, posix_memalign() leaves errno as it was,
// memalign() rounds odd alignments up, as glibc does. strdup() and strndup() are here because
// libc's own call malloc from code without frame pointers, which would hide their caller.
//
// ASSAY_NAME makes libc's names of them, or those of the linker's --wrap (docs/decisions/010-wrap.md).

#include <errno.h>
#include <string.h>

#include "runtime/core/objects/allocate.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/system/pages.h"

namespace assay {
namespace {

bool is_power_of_two(size_t n) {
  return n && (n & (n - 1)) == 0;
}

// memalign rounds odd alignments up, as glibc does.
void *allocate_aligned(size_t align, size_t size, AllocationFunction via, const void *frame) {
  size_t rounded = 16;
  while (rounded < align && rounded < ((size_t)1 << 40))
    rounded *= 2;
  return allocate(size, rounded, via, frame);
}

} // namespace
} // namespace assay

using namespace assay;

ASSAY_EXPORT void *ASSAY_NAME(malloc)(size_t size) {
  return allocate(size, 0, AllocationFunction::kMalloc, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(calloc)(size_t count, size_t size) {
  size_t whole;
  if (__builtin_mul_overflow(count, size, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(whole, 0, AllocationFunction::kCalloc, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(realloc)(void *block, size_t size) {
  return reallocate(block, size, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(reallocarray)(void *block, size_t count, size_t size) {
  size_t whole;
  if (__builtin_mul_overflow(count, size, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocate(block, whole, ASSAY_FRAME);
}

ASSAY_EXPORT void ASSAY_NAME(free)(void *block) {
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void ASSAY_NAME(cfree)(void *block) {
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void ASSAY_NAME(free_sized)(void *block, size_t) {
  release(block, ASSAY_FRAME);
}
ASSAY_EXPORT void ASSAY_NAME(free_aligned_sized)(void *block, size_t, size_t) {
  release(block, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(memalign)(size_t align, size_t size) {
  return allocate_aligned(align, size, AllocationFunction::kMemalign, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(aligned_alloc)(size_t align, size_t size) {
  return allocate_aligned(align, size, AllocationFunction::kAlignedAlloc, ASSAY_FRAME);
}

ASSAY_EXPORT int ASSAY_NAME(posix_memalign)(void **out, size_t align, size_t size) {
  if (align % sizeof(void *) != 0 || !is_power_of_two(align))
    return EINVAL;
  int saved = errno;
  void *block = allocate(size, align, AllocationFunction::kPosixMemalign, ASSAY_FRAME);
  errno = saved;
  if (!block)
    return ENOMEM;
  *out = block;
  return 0;
}

ASSAY_EXPORT void *ASSAY_NAME(valloc)(size_t size) {
  return allocate(size, kPage, AllocationFunction::kMemalign, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(pvalloc)(size_t size) {
  size_t whole;
  if (__builtin_add_overflow(size, kPage - 1, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(page_down(whole), kPage, AllocationFunction::kMemalign, ASSAY_FRAME);
}

ASSAY_EXPORT size_t ASSAY_NAME(malloc_usable_size)(void *block) {
  return usable_size(block);
}

#ifndef ASSAY_WRAP
extern "C" void *assay_malloc(size_t) __attribute__((alias("malloc")));
extern "C" void assay_free(void *) __attribute__((alias("free")));
#endif

// libc's own strdup calls malloc from code without frame pointers, which would hide its caller.
ASSAY_EXPORT char *ASSAY_NAME(strdup)(const char *s) {
  size_t size = strlen(s) + 1;
  void *copy = allocate(size, 0, AllocationFunction::kMalloc, ASSAY_FRAME);
  return copy ? (char *)memcpy(copy, s, size) : nullptr;
}

ASSAY_EXPORT char *ASSAY_NAME(strndup)(const char *s, size_t limit) {
  size_t size = strnlen(s, limit);
  char *copy = (char *)allocate(size + 1, 0, AllocationFunction::kMalloc, ASSAY_FRAME);
  if (!copy)
    return nullptr;
  copy[size] = 0;
  return (char *)memcpy(copy, s, size);
}
