// Taking from a counter that the program increments without atomic operations can fail: an
// increment that had read the old value writes it back over ours. So the counter is looked at again
// a little later (an increment takes nanoseconds), and only what is really gone from it is kept
// here; what was written over stays in the counter for the next walk.
//
// A half gains less than 2^31 between two walks a second apart: more than two thousand million
// accesses to one cache line in a second is beyond the machines that this runs on. Walks come at
// least every second while they take less than 50 ms (heaps of a gigabyte or two), and use a tenth
// of the time above.
//
// Refused: 64-bit halves (twice the shadow), a test at each increment (a tenth of the run time).

#include "runtime/heap/spill.h"

#include "runtime/core/arena.h"
#include "runtime/core/clock.h"
#include "runtime/core/lock.h"
#include "runtime/core/losses.h"
#include "runtime/core/runtime.h"

namespace assay::heap {
namespace {

constexpr uint32_t kPart = 1U << 31;
constexpr size_t kSlots = 1 << 16; // a counter needs minutes to get here; few ever do

struct Spilled {
  uint64_t counter; // its address; 0: free
  uint64_t reads, writes;
};

struct {
  Spilled *slots;
  SpinLock lock;
} constinit spill = {};

Spilled *find(uint64_t counter, bool make) {
  size_t at = (counter * 0x9e3779b97f4a7c15ULL) >> 48;
  static_assert(kSlots == 1 << 16);
  for (size_t i = 0; i < kSlots; i++, at = (at + 1) % kSlots) {
    Spilled &s = spill.slots[at];
    if (s.counter == counter)
      return &s;
    if (s.counter == 0) {
      if (make)
        s.counter = counter;
      return make ? &s : nullptr;
    }
  }
  return nullptr;
}

// Whether a part was really taken from the half.
bool take_part(uint32_t *half) {
  uint32_t before = __atomic_load_n(half, __ATOMIC_RELAXED);
  if (before < kPart)
    return false;
  __atomic_fetch_sub(half, kPart, __ATOMIC_RELAXED);
  for (uint64_t until = now_us() + 2; now_us() < until;)
    __builtin_ia32_pause();
  return __atomic_load_n(half, __ATOMIC_RELAXED) < before;
}

template <typename F> void each_counter(const void *block, uint64_t size, F f) {
  uint64_t begin = ASSAY_COUNTER_OF(block),
           end = ASSAY_COUNTER_OF((uint64_t)block + (size ? size - 1 : 0));
  for (uint64_t counter = begin; counter <= end; counter += ASSAY_COUNTER_BYTES)
    f(counter);
}

} // namespace

bool create_spill() {
  spill.slots = (Spilled *)reserve(kSlots * sizeof(Spilled));
  return spill.slots != nullptr;
}

void spill_counters(const void *block, uint64_t size) {
  each_counter(block, size, [&](uint64_t counter) {
    uint32_t *halves = (uint32_t *)counter;
    if (((halves[0] | halves[1]) & kPart) == 0)
      return;
    Locked locked(spill.lock);
    Spilled *s = find(counter, true);
    if (!s) {
      count_loss(ASSAY_LOSS_no_memory, 1);
      return;
    }
    if (!runtime.chunks.mark(block)) // freed meanwhile
      return;
    if (take_part(&halves[0]))
      s->reads += kPart;
    if (take_part(&halves[1]))
      s->writes += kPart;
  });
}

void add_spilled(const void *block, uint64_t size, Counts &counts, bool forget) {
  Locked locked(spill.lock);
  each_counter(block, size, [&](uint64_t counter) {
    if (Spilled *s = find(counter, false)) {
      counts.reads += s->reads;
      counts.writes += s->writes;
      if (forget)
        s->reads = s->writes = 0;
    }
  });
}

void move_spilled(const void *from, uint64_t from_size, const void *to) {
  Counts counts = {};
  add_spilled(from, from_size, counts, true);
  Locked locked(spill.lock);
  if (Spilled *s = find(ASSAY_COUNTER_OF(to), true)) {
    s->reads += counts.reads;
    s->writes += counts.writes;
  }
  runtime.chunks.mark(to);
}

void forget_spill() {
  spill.lock.reset();
  for (size_t i = 0; i < kSlots; i++)
    if (spill.slots[i].counter)
      spill.slots[i].reads = spill.slots[i].writes = 0;
}

} // namespace assay::heap
