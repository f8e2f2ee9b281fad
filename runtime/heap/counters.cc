// Ranges over the shadow. Zeroing a large range goes through the kernel, which drops whole pages,
// so that a huge allocation costs nothing for what is never touched.

#include "runtime/heap/counters.h"

#include <string.h>

#include "abi/sites.h"
#include "runtime/core/arena.h"
#include "runtime/core/lazy_shadow.h"
#include "runtime/core/runtime.h"
#include "runtime/core/syscall.h"
#include "runtime/core/touched_pages.h"

namespace assay::heap {
namespace {

constexpr uint64_t kSpan = ASSAY_COUNTERS_END - ASSAY_COUNTERS_BEGIN;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kDropBytes = 16 * kPage; // from here on dropping pages beats writing zeros
constexpr uint64_t kLookBytes = 64 * kPage; // from here on asking the kernel beats looking

uint64_t *first_counter(uint64_t address) {
  return (uint64_t *)ASSAY_COUNTER_OF(address);
}

uint64_t *end_counter(uint64_t address, uint64_t size) {
  return size ? first_counter(address + size - 1) + 1 : first_counter(address);
}

inline uint64_t min(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Adds to one half of the block's counter: 32 bits, as instrumented code does.
void add_to_half(uint64_t address, uint64_t n, uint32_t how) {
  uint32_t *half = (uint32_t *)first_counter(address) + (how & ASSAY_HOW_WRITE ? 1 : 0);
  if (how & ASSAY_HOW_ATOMIC)
    __atomic_fetch_add(half, (uint32_t)n, __ATOMIC_RELAXED);
  else
    *half += (uint32_t)n;
}

// As two counters of 32 bits: reads do not carry into writes.
void add_halves(uint64_t *counter, uint64_t value) {
  uint32_t *halves = (uint32_t *)counter;
  halves[0] += (uint32_t)value;
  halves[1] += (uint32_t)(value >> 32);
}

// One for each eight bytes, rounded up, to every block that the range touches.
void add_range(uint64_t start, uint64_t bytes, uint32_t how) {
  uint64_t end = start + bytes;
  if (end < start)
    return;
  while (start < end) {
    uint64_t block_end = min((start | (ASSAY_BLOCK_BYTES - 1)) + 1, end);
    add_to_half(start, (block_end - start + 7) / 8, how);
    start = block_end;
  }
}

} // namespace

bool map_counters() {
  if (reserve(kSpan, ASSAY_COUNTERS_BEGIN))
    return true;
  map_on_touch(ASSAY_COUNTERS_BEGIN, ASSAY_COUNTERS_END);
  return false;
}

void forget_counters() {
  long at = sys::map((void *)ASSAY_COUNTERS_BEGIN, kSpan, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED);
  if (!sys::failed(at)) {
    sys::advise((void *)at, kSpan, MADV_DONTDUMP);
    sys::advise((void *)at, kSpan, MADV_NOHUGEPAGE);
  }
}

namespace {

struct Range {
  uint64_t begin, end; // bytes of program
  // Of those, in the block of a counter.
  uint64_t bytes_in(const uint64_t *counter) const {
    uint64_t block = ((uint64_t)counter - ASSAY_COUNTERS_BASE) << ASSAY_COUNTERS_SHIFT;
    uint64_t from = block > begin ? block : begin;
    return min(block + ASSAY_BLOCK_BYTES, end) - from;
  }
};

void add_up(const Range &range, uint64_t *from, uint64_t *to, Look look, Counts &c) {
  for (uint64_t *counter = from; counter < to; counter++) {
    uint64_t value = *counter;
    if (!value)
      continue;
    uint64_t bytes = range.bytes_in(counter), reads = (uint32_t)value, writes = value >> 32;
    if (look == Look::kShare && bytes < ASSAY_BLOCK_BYTES) {
      reads = reads * bytes / ASSAY_BLOCK_BYTES;
      writes = writes * bytes / ASSAY_BLOCK_BYTES;
    }
    c.reads += reads;
    c.writes += writes;
    c.blocks_touched++;
    c.touched_bytes += bytes;
    if (look == Look::kTake)
      *counter = 0;
  }
}

} // namespace

Counts count_accesses(const void *start, uint64_t size, Look look) {
  Range range = {(uint64_t)start, (uint64_t)start + size};
  uint64_t *begin = first_counter(range.begin), *end = end_counter(range.begin, size);
  Counts c = {};
  c.blocks_spanned = (uint64_t)(end - begin);
  if (c.blocks_spanned * sizeof *begin < kLookBytes) {
    add_up(range, begin, end, look, c);
    return c;
  }
  uint64_t first_page = (uint64_t)begin & ~(kPage - 1),
           end_page = ((uint64_t)end + kPage - 1) & ~(kPage - 1);
  for_each_touched(first_page, end_page, [&](uint64_t from, uint64_t to) {
    uint64_t *first = (uint64_t *)from, *stop = (uint64_t *)to;
    add_up(range, first > begin ? first : begin, stop < end ? stop : end, look, c);
  });
  return c;
}

void zero_counters(const void *start, uint64_t size) {
  uint64_t *begin = first_counter((uint64_t)start), *end = end_counter((uint64_t)start, size);
  uint64_t from = ((uint64_t)begin + kPage - 1) & ~(kPage - 1), to = (uint64_t)end & ~(kPage - 1);
  if (to > from && to - from >= kDropBytes &&
      !sys::failed(sys::advise((void *)from, to - from, MADV_DONTNEED))) {
    for (uint64_t *c = begin; c < (uint64_t *)from; c++)
      *c = 0;
    begin = (uint64_t *)to;
  }
  for (uint64_t *c = begin; c < end; c++)
    *c = 0;
}

void zero_own_counters(const void *start, uint64_t size) {
  uint64_t begin = ((uint64_t)start + ASSAY_BLOCK_BYTES - 1) & ~(ASSAY_BLOCK_BYTES - 1);
  uint64_t end = ((uint64_t)start + size) & ~(ASSAY_BLOCK_BYTES - 1);
  if (begin < end)
    zero_counters((void *)begin, end - begin);
}

void move_counters(const void *from, uint64_t from_size, const void *to, uint64_t to_size) {
  uint64_t *source = first_counter((uint64_t)from),
           *source_end = end_counter((uint64_t)from, from_size);
  uint64_t *target = first_counter((uint64_t)to), *target_end = end_counter((uint64_t)to, to_size);
  if (source == target || target == target_end)
    return;
  uint64_t *last = target_end - 1;
  auto move_one = [&](uint64_t *s) {
    if (uint64_t value = *s) {
      uint64_t *t = target + (s - source);
      add_halves(t < target_end ? t : last, value);
      *s = 0;
    }
  };
  if (target < source)
    for (uint64_t *s = source; s < source_end; s++)
      move_one(s);
  else
    for (uint64_t *s = source_end; s-- > source;)
      move_one(s);
}

} // namespace assay::heap

using namespace assay::heap;

extern "C" {

void __assay_heap_range(const void *start, uint64_t bytes, uint32_t how) {
  add_range((uint64_t)start, bytes, how);
}

void __assay_heap_string(const char *start, uint64_t limit, uint32_t how) {
  uint64_t length = strnlen(start, limit);
  add_range((uint64_t)start, length < limit ? length + 1 : length, how);
}

void __assay_heap_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  const char *p = (const char *)a, *q = (const char *)b;
  uint64_t n = 0;
  while (n < limit && p[n] == q[n] && !((how & ASSAY_HOW_STRING) && p[n] == 0))
    n++;
  if (n < limit) // the bytes that decided were read too
    n++;
  add_range((uint64_t)a, n, how & ASSAY_HOW_ATOMIC);
  add_range((uint64_t)b, n, how & ASSAY_HOW_ATOMIC);
}

void __assay_heap_masked(const void *start, uint64_t element_bytes, uint64_t mask, uint32_t how) {
  uint64_t last_block = ~0ULL;
  for (; mask; mask &= mask - 1) {
    uint64_t address = (uint64_t)start + element_bytes * (uint64_t)__builtin_ctzll(mask);
    if (address / ASSAY_BLOCK_BYTES == last_block)
      continue;
    last_block = address / ASSAY_BLOCK_BYTES;
    add_to_half(address, 1, how);
  }
}
}
