// Three arrays in reserved address space, of which only what is touched costs memory. An entry is a
// context and a flag: nobody has been told. A coarse entry wins over the finer ones below it; a smaller
// object in its range splits it into finer ones.

#include "runtime/workingset/owners.h"

#include "abi/shadow.h"
#include "runtime/core/system/arena.h"

namespace assay::workingset {
namespace {

constexpr uint32_t kNew = 1U << 31;
constexpr unsigned kShifts[] = {6, 12, 20}; // blocks, pages, spans
constexpr int kLevels = 3;

// Terabytes, so not where the kernel puts the program's own mappings: these would be moved down, out of
// the windows that have stripes of counters (abi/stripes.h).
constexpr uint64_t kPlace = 0x440000000000;

struct {
  uint32_t *levels[kLevels];
} constinit owners = {};

// Of a context that nobody has been told.
uint32_t new_entry(ContextId context) {
  return (uint32_t)context | kNew;
}

uint64_t entries(int level) {
  return ASSAY_HIGH_END >> kShifts[level];
}

uint32_t *entry(int level, uint64_t address) {
  return owners.levels[level] + (address >> kShifts[level]);
}

// The finer entries below a coarse one say what it said: only then may they say something else. A block that
// another thread allocates at this very moment may be left with the old owner.
void split(int level, uint64_t address) {
  uint32_t *e = entry(level, address), value = __atomic_load_n(e, __ATOMIC_RELAXED);
  if (__builtin_expect(value == 0, 1))
    return;
  uint64_t begin = address >> kShifts[level] << kShifts[level];
  uint32_t *finer = entry(level - 1, begin);
  for (uint64_t i = 0; i < 1ULL << (kShifts[level] - kShifts[level - 1]); i++)
    __atomic_store_n(&finer[i], value, __ATOMIC_RELAXED);
  __atomic_store_n(e, 0, __ATOMIC_RELAXED);
}

// Down to this level; the coarsest first.
void split_above(int level, uint64_t address) {
  for (int coarser = kLevels - 1; coarser > level; coarser--)
    split(coarser, address);
}

// Of one page.
void own_blocks(uint64_t at, uint64_t end, ContextId context) {
  split_above(0, at);
  for (uint32_t *e = entry(0, at), *last = entry(0, end - 1); e <= last; e++)
    __atomic_store_n(e, new_entry(context), __ATOMIC_RELAXED);
}

} // namespace

bool create_owners() {
  uint64_t place = kPlace;
  for (int level = 0; level < kLevels; level++) {
    uint64_t bytes = entries(level) * sizeof(uint32_t);
    void *span = reserve(bytes, place);
    owners.levels[level] = (uint32_t *)(span ? span : reserve(bytes));
    if (!owners.levels[level])
      return false;
    place += bytes;
  }
  return true;
}

void own(const void *block, uint64_t bytes, ContextId context) {
  uint64_t at = (uint64_t)block, end = at + (bytes ? bytes : 1);
  if (end > ASSAY_HIGH_END || end < at)
    return;
  while (at < end) {
    int level = kLevels - 1;
    while (level > 0 && (at % (1ULL << kShifts[level]) || end - at < 1ULL << kShifts[level]))
      level--;
    uint64_t next = (at | ((1ULL << kShifts[level > 0 ? level : 1]) - 1)) + 1;
    if (level == 0) {
      own_blocks(at, next < end ? next : end, context);
    } else {
      split_above(level, at);
      __atomic_store_n(entry(level, at), new_entry(context), __ATOMIC_RELAXED);
    }
    at = next;
  }
}

void reset_owners_in_child() {
  for (int level = 0; level < kLevels; level++)
    if (owners.levels[level])
      empty_span(owners.levels[level], entries(level) * sizeof(uint32_t));
}

bool take_new_owner(uint64_t address, OwnedRun &run) {
  for (int level = kLevels - 1; level >= 0; level--) {
    uint32_t *e = entry(level, address), value = __atomic_load_n(e, __ATOMIC_RELAXED);
    if (!value)
      continue;
    if (!(value & kNew) || !__atomic_compare_exchange_n(e, &value, value & ~kNew, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return false; // known; or a new one came this moment, and is asked next time
    uint64_t blocks = 1ULL << (kShifts[level] - 6);
    run = {address >> 6 & ~(blocks - 1), blocks, ContextId{value & ~kNew}};
    return true;
  }
  return false;
}

} // namespace assay::workingset
