// Taking from a counter that the program increments without atomic operations cannot work: a loop of
// increments keeps the value in the store buffer of its core and never sees ours. So nothing is taken. A half
// is only read, often enough that it cannot wrap twice between two looks: when it is lower than at the last
// look, it has wrapped once.
//
// That is true while a half gains less than 2^32 - 2^28 between two looks, since from 2^28 on it is watched.
// There is a look every tenth of a second, or less often if it takes a hundredth of the time, but every second
// while it takes less than 50 ms (heaps of a gigabyte or two); above, it may use a tenth of the time. A core
// makes some ten thousand million accesses a second to one cache line, in the most favourable of loops.
//
// Refused: 64-bit halves (twice the shadow), a test at each increment (a tenth of the run time).

#include "runtime/heap/wrap.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/shadow/touched_pages.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/pages.h"
#include "runtime/heap/stripes.h"

namespace assay::heap {
namespace {

constexpr unsigned kWatchedFrom = 28;                  // a half with 2^28 accesses or more
constexpr uint32_t kWatchedBits = ~0U << kWatchedFrom; // has one of these bits
constexpr unsigned kSlotBits = 18;                     // few counters ever get there
constexpr size_t kSlots = 1 << kSlotBits;

struct Watched {
  uint64_t counter;  // its address; 0: free
  uint32_t last[2];  // at the last look: reads, writes
  uint32_t wraps[2]; // times 2^32
};

struct {
  Watched *slots;
  SpinLock lock;
  bool any; // was ever watched
} constinit watch = {};

Watched *find(uint64_t counter, bool make) {
  size_t at = (counter * 0x9e3779b97f4a7c15ULL) >> (64 - kSlotBits);
  for (size_t i = 0; i < kSlots; i++, at = (at + 1) % kSlots) {
    Watched &w = watch.slots[at];
    if (w.counter == counter)
      return &w;
    if (w.counter == 0) {
      if (make) {
        w.counter = counter;
        watch.any = true;
      }
      return make ? &w : nullptr;
    }
  }
  return nullptr;
}

void look(Watched &w) {
  for (int half = 0; half < 2; half++) {
    uint32_t now = __atomic_load_n((uint32_t *)w.counter + half, __ATOMIC_RELAXED);
    w.wraps[half] += now < w.last[half];
    w.last[half] = now;
  }
}

// Counters are looked at in pairs of 32 bits: reads and writes, or those of two blocks of 32 bytes.
uint64_t words_of(const void *address) {
  return (((uint64_t)address >> ASSAY_COUNTERS_SHIFT) & ~7ULL) + __assay_counters_base;
}

template <typename F> void each_counter(const void *block, uint64_t size, F f) {
  constexpr uint64_t kLarge = 64 * kPage;
  uint64_t begin = words_of(block);
  uint64_t end = words_of((const char *)block + (size ? size - 1 : 0)) + ASSAY_COUNTER_BYTES;
  auto each = [&](uint64_t from, uint64_t to) {
    for (uint64_t counter = from; counter < to; counter += ASSAY_COUNTER_BYTES)
      f(counter);
  };
  uint32_t stripes = in_stripes((uint64_t)block, (uint64_t)block + size) ? used_stripes : 1;
  for (uint32_t s = 0; s < stripes; s++) {
    uint64_t first = begin + ASSAY_STRIPE(s), stop = end + ASSAY_STRIPE(s);
    if (end - begin < kLarge)
      each(first, stop);
    else
      for_each_touched(page_down(first), page_up(stop), [&](uint64_t from, uint64_t to) {
        each(from > first ? from : first, to < stop ? to : stop);
      });
  }
}

} // namespace

bool create_watch() {
  watch.slots = (Watched *)reserve(kSlots * sizeof(Watched));
  return watch.slots != nullptr;
}

bool can_wrap() {
  return (units.mode & ASSAY_COUNTERS_LAYOUT) != ASSAY_COUNTERS_TOTAL;
}

uint64_t next_check_after(uint64_t took_us) {
  constexpr uint64_t kOftenest = 100'000, kSeldomest = 950'000, kCheap = 50'000;
  if (took_us >= kCheap)
    return 9 * took_us;
  uint64_t wait = 99 * took_us;
  return wait < kOftenest ? kOftenest : wait < kSeldomest ? wait : kSeldomest;
}

bool may_have_wrapped(const void *block, const ChunkHeader &header) {
  return header.flags & (kSharedBlocks | kMapped) ? watch.any : runtime.chunks.is_watched(block);
}

bool may_be_large(const Counts &counts) {
  return can_wrap() && (counts.reads | counts.writes) >> kWatchedFrom;
}

bool has_large_counter(uint64_t begin, uint64_t end) {
  constexpr uint64_t kBothHalves = (uint64_t)kWatchedBits << 32 | kWatchedBits;
  uint64_t any = 0;
  each_counter((const void *)begin, end - begin,
               [&](uint64_t counter) { any |= *(const uint64_t *)counter; });
  return any & kBothHalves;
}

void watch_counters(const void *block, uint64_t size) {
  if (!can_wrap())
    return;
  bool in_chunk_map = runtime.chunks.owns(block);
  bool watched = in_chunk_map ? runtime.chunks.is_watched(block) : watch.any;
  each_counter(block, size, [&](uint64_t counter) {
    uint32_t *halves = (uint32_t *)counter;
    bool high = ((halves[0] | halves[1]) & kWatchedBits) != 0;
    if (!watched && !high)
      return;
    Locked locked(watch.lock);
    Watched *w = find(counter, high);
    if (w)
      look(*w);
    else if (high)
      count_loss(ASSAY_LOSS_no_memory, 1);
    if (w && !watched && in_chunk_map) // else it was freed meanwhile
      watched = runtime.chunks.watch(block);
  });
}

void add_wrapped(const void *block, uint64_t size, Counts &counts, bool forget) {
  Locked locked(watch.lock);
  each_counter(block, size, [&](uint64_t counter) {
    if (Watched *w = find(counter, false)) {
      bool fine = (units.mode & ASSAY_COUNTERS_LAYOUT) == ASSAY_COUNTERS_FINE;
      counts.reads += (uint64_t)w->wraps[0] << 32;
      (fine ? counts.reads : counts.writes) += (uint64_t)w->wraps[1] << 32;
      if (forget)
        *w = {counter, {}, {}};
    }
  });
}

void move_wrapped(const void *from, uint64_t from_size, const void *to) {
  Counts counts = {};
  add_wrapped(from, from_size, counts, true);
  {
    Locked locked(watch.lock);
    if (Watched *w = find(words_of(to), true)) {
      w->wraps[0] += (uint32_t)(counts.reads >> 32);
      w->wraps[1] += (uint32_t)(counts.writes >> 32);
      w->last[0] = w->last[1] = 0;
      look(*w);
    }
  }
  runtime.chunks.watch(to);
}

void reset_watch_in_child() {
  watch.lock.reset();
  for (size_t i = 0; watch.any && i < kSlots; i++)
    if (watch.slots[i].counter)
      watch.slots[i] = {watch.slots[i].counter, {}, {}};
}

} // namespace assay::heap
