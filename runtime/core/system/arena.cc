// A bump allocator over mmapped pieces. Alternatives refused: the program's malloc (we are inside
// it), a general allocator of our own (nothing here is ever freed but whole tables).

#include "runtime/core/system/arena.h"

#include <errno.h>

#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

struct {
  SpinLock lock;
  uintptr_t next, end;
} constinit arena = {};

constexpr uint32_t kMaxSpans = 512;

struct {
  uint32_t used;
  uint64_t bytes;
  struct {
    uintptr_t begin, end;
  } spans[kMaxSpans];
} constinit reserved = {};

void note_reserved(uintptr_t begin, uintptr_t end) {
  __atomic_fetch_add(&reserved.bytes, end - begin, __ATOMIC_RELAXED);
  uint32_t i = __atomic_load_n(&reserved.used, __ATOMIC_RELAXED);
  if (i < kMaxSpans && (i = __atomic_fetch_add(&reserved.used, 1, __ATOMIC_RELAXED)) < kMaxSpans)
    reserved.spans[i] = {begin, end};
}

} // namespace

bool is_reserved(uintptr_t begin, uintptr_t end) {
  uint32_t used = __atomic_load_n(&reserved.used, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < used && i < kMaxSpans; i++)
    if (begin < reserved.spans[i].end && reserved.spans[i].begin < end)
      return true;
  return false;
}

uint64_t reserved_bytes() {
  return __atomic_load_n(&reserved.bytes, __ATOMIC_RELAXED);
}

constinit void (*raise_memory_limits)(int64_t bytes) = nullptr;

void *reserve(size_t bytes, uintptr_t at) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (at)
    flags |= MAP_FIXED_NOREPLACE;
  if (raise_memory_limits)
    raise_memory_limits((int64_t)bytes);
  long got = sys::map((void *)at, bytes, PROT_READ | PROT_WRITE, flags);
  if (!sys::failed(got) && at &&
      (uintptr_t)got != at) { // kernels before 4.17 take the flag for a hint
    sys::unmap((void *)got, bytes);
    got = -EEXIST;
  }
  if (sys::failed(got)) {
    if (raise_memory_limits)
      raise_memory_limits(-(int64_t)bytes);
    return nullptr;
  }
  sys::advise((void *)got, bytes, MADV_DONTDUMP);
  sys::advise((void *)got, bytes, MADV_NOHUGEPAGE);
  note_reserved((uintptr_t)got, (uintptr_t)got + bytes);
  return (void *)got;
}

void give_back(void *span, size_t bytes) {
  sys::unmap(span, bytes);
  if (raise_memory_limits)
    raise_memory_limits(-(int64_t)bytes);
  __atomic_fetch_sub(&reserved.bytes, bytes, __ATOMIC_RELAXED);
  const uint32_t used = __atomic_load_n(&reserved.used, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < used && i < kMaxSpans; i++)
    if (reserved.spans[i].begin == (uintptr_t)span)
      reserved.spans[i] = {};
}

void empty_span(void *span, size_t bytes) {
  sys::advise(span, bytes, MADV_DONTNEED);
}

static void reset_arena_in_child() {
  arena.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_arena_in_child);

void *arena_allocate(size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  Locked locked(arena.lock);
  if (arena.end - arena.next < bytes) {
    size_t piece = bytes > kPieceBytes ? bytes : kPieceBytes;
    void *memory = reserve(piece);
    if (!memory) {
      count_loss(ASSAY_LOSS_no_memory, 1);
      return nullptr;
    }
    if (bytes > kPieceBytes)
      return memory;
    arena.next = (uintptr_t)memory;
    arena.end = arena.next + piece;
  }
  void *result = (void *)arena.next;
  arena.next += bytes;
  return result;
}

} // namespace assay
