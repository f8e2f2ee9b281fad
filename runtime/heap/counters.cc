// Ranges over the shadow, for each layout of counters. Zeroing a large range goes through the kernel,
// which drops whole pages, and so does looking at one, which skips what was never touched: a huge
// object costs what is used of it.

#include "runtime/heap/counters.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/shadow/lazy_shadow.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/shadow/touched_pages.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/string_bytes.h"
#include "runtime/core/system/syscall.h"
#include "runtime/core/system/thread.h"
#include "runtime/core/system/vector_parts.h"
#include "runtime/heap/shared_blocks.h"
#include "runtime/heap/stripes.h"

uint64_t __assay_counters_base = ASSAY_COUNTERS_BASE;
extern "C" __attribute__((alias("__assay_counters_base"))) uint64_t counters_base;

namespace assay::heap {
namespace {

constexpr uint64_t kSpan = ASSAY_COUNTERS_END - ASSAY_COUNTERS_BEGIN;
constexpr uint64_t kDropBytes = 16 * kPage; // from here on dropping pages beats writing zeros
constexpr uint64_t kScanBytes = 64 * kPage; // from here on asking the kernel beats looking

template <typename Word> void add_n(Word *counter, Word n, uint32_t how) {
  if (how & ASSAY_ACCESS_ATOMIC)
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
  else
    *counter += n;
}

struct Halves {
  using Word = uint64_t;
  static constexpr uint64_t kBlock = ASSAY_BLOCK_BYTES;
  static uint64_t reads(Word w) { return (uint32_t)w; }
  static uint64_t writes(Word w) { return w >> 32; }
  static void add(Word *to, Word w) { // reads do not carry into writes
    ((uint32_t *)to)[0] += (uint32_t)w;
    ((uint32_t *)to)[1] += (uint32_t)(w >> 32);
  }
  static void count(Word *counter, uint64_t n, uint32_t how) {
    add_n((uint32_t *)counter + (how & ASSAY_ACCESS_WRITE ? 1 : 0), (uint32_t)n, how);
  }
};
struct Total {
  using Word = uint64_t;
  static constexpr uint64_t kBlock = ASSAY_BLOCK_BYTES;
  static uint64_t reads(Word w) { return w; }
  static uint64_t writes(Word) { return 0; }
  static void add(Word *to, Word w) { *to += w; }
  static void count(Word *counter, uint64_t n, uint32_t how) { add_n(counter, (Word)n, how); }
};
struct Fine {
  using Word = uint32_t;
  static constexpr uint64_t kBlock = ASSAY_BLOCK_BYTES / 2;
  static uint64_t reads(Word w) { return w; }
  static uint64_t writes(Word) { return 0; }
  static void add(Word *to, Word w) { *to += w; }
  static void count(Word *counter, uint64_t n, uint32_t how) { add_n(counter, (Word)n, how); }
};

// Calls f with the layout that the program was built for.
template <typename F> auto with_layout(F f) {
  uint32_t layout = units.mode & ASSAY_COUNTERS_LAYOUT;
  if (__builtin_expect(layout == ASSAY_COUNTERS_HALVES, 1))
    return f(Halves());
  return layout == ASSAY_COUNTERS_TOTAL ? f(Total()) : f(Fine());
}

inline uint64_t min(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// The counters of [start, start + size).
template <typename Layout> struct Counters {
  using Word = Layout::Word;
  uint64_t start, end; // bytes of program
  Word *first, *stop;

  Counters(uint64_t at, uint64_t size, uint64_t stripe = 0)
      : start(at), end(at + size), first(counter(at, stripe)),
        stop(size ? counter(at + size - 1, stripe) + 1 : first) {}
  static Word *counter(uint64_t address, uint64_t stripe) {
    return (Word *)(((address >> ASSAY_COUNTERS_SHIFT) & ~(sizeof(Word) - 1)) + counters_base +
                    stripe);
  }
  // How many bytes of the range are in the block of a counter (of the first stripe).
  uint64_t bytes_in(const Word *c) const {
    uint64_t block = ((uint64_t)c - counters_base) << ASSAY_COUNTERS_SHIFT;
    return min(block + Layout::kBlock, end) - (block > start ? block : start);
  }
};

// The same counter in stripe s.
template <typename Word> Word *in_stripe(Word *counter, uint32_t s) {
  return (Word *)((uint64_t)counter + ASSAY_STRIPE(s));
}

// Adds what was counted in one block; is_new: no other stripe had counts of it.
template <typename Layout>
void add_block(const Counters<Layout> &range, typename Layout::Word *counter, uint64_t reads,
               uint64_t writes, bool is_new, ReadMode look, Counts &counts) {
  uint64_t bytes = range.bytes_in(counter);
  if (look == ReadMode::kShare && bytes < Layout::kBlock && is_new && !meet_shared_block(counter))
    reads = writes = 0;
  counts.reads += reads;
  counts.writes += writes;
  counts.blocks_touched += is_new;
  counts.touched_bytes += is_new ? bytes : 0;
}

// All counters of the range, block by block.
template <typename Layout>
void add_up(const Counters<Layout> &range, ReadMode look, uint32_t stripes, Counts &counts) {
  for (auto *counter = range.first; counter < range.stop; counter++) {
    uint64_t reads = 0, writes = 0;
    for (uint32_t s = 0; s < stripes; s++) {
      auto *c = in_stripe(counter, s);
      if (auto value = *c) {
        reads += Layout::reads(value);
        writes += Layout::writes(value);
        if (look == ReadMode::kTake)
          *c = 0;
      }
    }
    if (reads | writes)
      add_block(range, counter, reads, writes, true, look, counts);
  }
}

// Is the counter zero in all stripes below s?
template <typename Word> bool is_first(Word *counter, uint32_t s) {
  while (s-- > 0)
    if (*in_stripe(counter, s))
      return false;
  return true;
}

template <typename Layout>
void move(uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t stripe) {
  using Word = Layout::Word;
  Counters<Layout> source(from, from_size, stripe), target(to, to_size, stripe);
  if (source.first == target.first || target.first == target.stop)
    return;
  auto move_one = [&](Layout::Word *s) {
    if (auto value = *s) {
      auto *t = target.first + (s - source.first);
      Layout::add(t < target.stop ? t : target.stop - 1, value);
      *s = 0;
    }
  };
  bool apart = target.stop <= source.first || source.stop <= target.first;
  if (apart && (uint64_t)source.stop - (uint64_t)source.first >= kScanBytes)
    for_each_touched(page_down((uint64_t)source.first), page_up((uint64_t)source.stop),
                     [&](uint64_t from_page, uint64_t to_page) {
                       Word *s =
                           (Word *)from_page > source.first ? (Word *)from_page : source.first;
                       for (; s < (Word *)to_page && s < source.stop; s++)
                         move_one(s);
                     });
  else if (target.first < source.first)
    for (auto *s = source.first; s < source.stop; s++)
      move_one(s);
  else
    for (auto *s = source.stop; s-- > source.first;)
      move_one(s);
}

// One for each eight bytes, rounded up, to every block that the range touches.
template <typename Layout>
[[gnu::always_inline]] inline void add_range(uint64_t start, uint64_t bytes, uint32_t how) {
  uint64_t end = start + bytes;
  if (end <= start)
    return;
  auto *counter = Counters<Layout>::counter(start, own_stripe);
  uint64_t block_end = (start | (Layout::kBlock - 1)) + 1;
  for (; block_end < end; block_end += Layout::kBlock) {
    Layout::count(counter++, (block_end - start + 7) / 8, how);
    start = block_end;
  }
  Layout::count(counter, (end - start + 7) / 8, how);
}

[[gnu::always_inline]] inline void add_range(uint64_t start, uint64_t bytes, uint32_t how) {
  if (__builtin_expect((units.mode & ASSAY_COUNTERS_LAYOUT) == ASSAY_COUNTERS_HALVES, 1))
    add_range<Halves>(start, bytes, how);
  else
    with_layout([&]<typename Layout>(Layout) { add_range<Layout>(start, bytes, how); });
}

} // namespace

bool map_counters() {
  if (reserve_shadow(ASSAY_COUNTERS_SHIFT, ASSAY_COUNTERS_BASE))
    return true;
  map_on_touch(ASSAY_COUNTERS_BEGIN, ASSAY_COUNTERS_END);
  // Something else is there: code with a dynamic base can still count.
  void *elsewhere = reserve(kSpan);
  if (elsewhere)
    __assay_counters_base = (uint64_t)elsewhere;
  return elsewhere != nullptr;
}

bool counters_are_elsewhere() {
  return __assay_counters_base != ASSAY_COUNTERS_BASE;
}

void reset_counters_in_child() {
  if (counters_are_elsewhere())
    empty_span((void *)counters_base, kSpan);
  else
    empty_shadow(ASSAY_COUNTERS_SHIFT, ASSAY_COUNTERS_BASE);
}

uint64_t block_bytes() {
  return (units.mode & ASSAY_COUNTERS_LAYOUT) == ASSAY_COUNTERS_FINE ? Fine::kBlock
                                                                     : ASSAY_BLOCK_BYTES;
}

uint64_t blocks_spanned(const void *start, uint64_t size) {
  uint64_t block = block_bytes(), first = (uint64_t)start / block;
  return size ? ((uint64_t)start + size - 1) / block - first + 1 : 0;
}

namespace {

// Stripes that may hold counts of these addresses.
uint32_t stripes_of(uint64_t begin, uint64_t end) {
  return in_stripes(begin, end) ? used_stripes : 1;
}

// Calls f(stripe, first, stop) for runs of the range's counters in pages that were touched; first and
// stop are those of the first stripe.
template <typename Layout, typename F>
void for_each_run(const Counters<Layout> &range, uint32_t stripes, F f) {
  using Word = Layout::Word;
  for (uint32_t s = 0; s < stripes; s++) {
    Word *begin = in_stripe(range.first, s), *end = in_stripe(range.stop, s);
    for_each_touched(page_down((uint64_t)begin), page_up((uint64_t)end),
                     [&](uint64_t from, uint64_t to) {
                       Word *first = (Word *)from > begin ? (Word *)from : begin;
                       Word *stop = (Word *)to < end ? (Word *)to : end;
                       f(s, (Word *)((uint64_t)first - ASSAY_STRIPE(s)),
                         (Word *)((uint64_t)stop - ASSAY_STRIPE(s)));
                     });
  }
}

// Writes nothing where nothing is: that would take memory.
template <typename Word> void zero_touched(Word *from, Word *to) {
  for (; from < to; from++)
    if (*from)
      *from = 0;
}

template <typename Word> void zero(Word *begin, Word *end, bool is_first_stripe) {
  uint64_t from = page_up((uint64_t)begin), to = page_down((uint64_t)end);
  if (to > from && to - from >= kDropBytes &&
      !sys::failed(sys::advise((void *)from, to - from, MADV_DONTNEED))) {
    zero_touched(begin, (Word *)from);
    begin = (Word *)to;
  }
  if (!is_first_stripe) {
    zero_touched(begin, end);
    return;
  }
  while (begin < end)
    *begin++ = 0;
}

} // namespace

Counts count_blocks(const void *start, uint64_t size, ReadMode look) {
  return with_layout([&]<typename Layout>(Layout) -> Counts {
    Counters<Layout> range((uint64_t)start, size);
    uint32_t stripes = stripes_of(range.start, range.end);
    Counts counts = {};
    counts.blocks_spanned = (uint64_t)(range.stop - range.first);
    if (counts.blocks_spanned * sizeof(typename Layout::Word) < kScanBytes) {
      add_up(range, look, stripes, counts);
      return counts;
    }
    for_each_run(range, stripes, [&](uint32_t s, auto *first, auto *stop) {
      for (auto *c = first; c < stop; c++)
        if (auto value = *in_stripe(c, s))
          add_block(range, c, Layout::reads(value), Layout::writes(value), is_first(c, s), look,
                    counts);
    });
    if (look == ReadMode::kTake)
      zero_counters(start, size);
    return counts;
  });
}

void zero_blocks(const void *start, uint64_t size) {
  with_layout([&]<typename Layout>(Layout) {
    Counters<Layout> range((uint64_t)start, size);
    for (uint32_t s = 0, stripes = stripes_of(range.start, range.end); s < stripes; s++)
      zero(in_stripe(range.first, s), in_stripe(range.stop, s), s == 0);
  });
}

void zero_own_counters(const void *start, uint64_t size) {
  uint64_t block = block_bytes();
  uint64_t begin = ((uint64_t)start + block - 1) & ~(block - 1);
  uint64_t end = ((uint64_t)start + size) & ~(block - 1);
  if (begin < end)
    zero_counters((void *)begin, end - begin);
}

void move_counters(const void *from, uint64_t from_size, const void *to, uint64_t to_size) {
  with_layout([&]<typename Layout>(Layout) {
    for (uint32_t s = 0, stripes = stripes_of((uint64_t)from, (uint64_t)from + from_size);
         s < stripes; s++)
      move<Layout>((uint64_t)from, from_size, (uint64_t)to, to_size, ASSAY_STRIPE(s));
  });
}

void for_each_counted(uint64_t start, uint64_t end,
                      void (*f)(void *context, const BlockCount &block), void *context) {
  with_layout([&]<typename Layout>(Layout) {
    Counters<Layout> range(start, end - start);
    uint32_t stripes = stripes_of(start, end);
    for_each_run(range, stripes, [&](uint32_t s, auto *first, auto *stop) {
      for (auto *c = first; c < stop; c++) {
        if (auto value = *in_stripe(c, s))
          f(context, {((uint64_t)c - counters_base) << ASSAY_COUNTERS_SHIFT, Layout::reads(value),
                      Layout::writes(value), is_first(c, s)});
      }
    });
  });
}

} // namespace assay::heap

using namespace assay::heap;

extern "C" {

void __assay_heap_range(const void *start, uint64_t bytes, uint32_t how) {
  add_range((uint64_t)start, bytes, how);
}

void __assay_heap_vector(const void *vector, uint64_t count, uint64_t bytes, uint32_t how) {
  assay::for_each_part(vector, count, bytes, [how](const void *start, uint64_t size) {
    add_range((uint64_t)start, size, how);
  });
}

void __assay_heap_string(const char *start, uint64_t limit, uint32_t how) {
  add_range((uint64_t)start, assay::string_bytes(start, limit), how);
}

void __assay_heap_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  uint64_t bytes = assay::compared_bytes(a, b, limit, how);
  add_range((uint64_t)a, bytes, how & ASSAY_ACCESS_ATOMIC);
  add_range((uint64_t)b, bytes, how & ASSAY_ACCESS_ATOMIC);
}

void __assay_heap_masked(const void *start, uint64_t element_bytes, uint64_t mask, uint32_t how) {
  with_layout([&]<typename Layout>(Layout) {
    uint64_t counted = 0; // blocks below this one were, as far as lanes reach them
    for (; mask; mask &= mask - 1) {
      uint64_t first = (uint64_t)start + element_bytes * (uint64_t)__builtin_ctzll(mask);
      uint64_t block = first / Layout::kBlock, last = (first + element_bytes - 1) / Layout::kBlock;
      for (block = block < counted ? counted : block; block <= last; block++)
        Layout::count(Counters<Layout>::counter(block * Layout::kBlock, own_stripe), 1, how);
      counted = block;
    }
  });
}
}
