// A handful of spans, a few for each shadow. Most of a shadow belongs to addresses that no program has, unless it asks
// for them (MAP_FIXED at 4 GiB, say): such mappings are noted, and their shadow is in use from then on.

#include "runtime/core/shadow/shadow_map.h"

#include "abi/shadow.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

struct Span {
  uint64_t begin, end;
};

constexpr int kMaxSpans = 4096; // each mapping of the program over an unused shadow cuts one in two
constexpr int kMaxShadows = 4, kMaxOdd = 64, kMaxOther = 64;
constexpr uint64_t kTwoGigabytes = 0x80000000; // MAP_32BIT gives addresses below
constexpr uint64_t kPiece = 1 << 20;

struct {
  SpinLock lock;
  Span spans[kMaxSpans];
  int used;
  struct {
    unsigned shift;
    uint64_t base;
  } shadows[kMaxShadows];
  int shadow_count;
  Span odd[kMaxOdd]; // mappings of the program outside its windows
  int odd_count;
  Span other[kMaxOther]; // of ours, no shadows
  int other_count;
} constinit mapped = {};

bool overlap(Span a, Span b) {
  return a.begin < b.end && b.begin < a.end;
}

bool overlaps_shadow_of(Span program, Span span) {
  for (int i = 0; i < mapped.shadow_count; i++) {
    const auto &shadow = mapped.shadows[i];
    Span own = {(program.begin >> shadow.shift) + shadow.base,
                ((program.end - 1) >> shadow.shift) + shadow.base + 1};
    if (overlap(own, span))
      return true;
  }
  return false;
}

bool is_in_use(Span span) {
#define ASSAY_OVERLAPS(window)                                                                     \
  overlaps_shadow_of({ASSAY_##window##_BEGIN, ASSAY_##window##_END}, span) ||
  if (ASSAY_PROGRAM_WINDOWS(ASSAY_OVERLAPS) overlaps_shadow_of({0, kTwoGigabytes}, span))
    return true;
#undef ASSAY_OVERLAPS
  for (int i = 0; i < mapped.odd_count; i++)
    if (overlaps_shadow_of(mapped.odd[i], span))
      return true;
  for (int i = 0; i < mapped.other_count; i++)
    if (overlap(mapped.other[i], span))
      return true;
  return false;
}

// Under the lock.
bool map_span(uint64_t begin, uint64_t end) {
  while (begin < end) {
    const Span *here = nullptr; // the span that begin lies in
    uint64_t stop = end;        // where the next one begins
    for (int i = 0; i < mapped.used; i++) {
      const Span &span = mapped.spans[i];
      if (span.begin <= begin && begin < span.end)
        here = &span;
      else if (span.begin > begin && span.begin < stop)
        stop = span.begin;
    }
    if (here) {
      begin = here->end;
      continue;
    }
    if (mapped.used == kMaxSpans || !reserve(stop - begin, begin))
      return false;
    mapped.spans[mapped.used++] = {begin, stop};
    begin = stop;
  }
  return true;
}

} // namespace

bool reserve_shadow(unsigned shift, uint64_t base) {
  const uint64_t low_end = (kTwoGigabytes >> shift) + base, end = (ASSAY_HIGH_END >> shift) + base;
  Locked locked(mapped.lock);
  const int before = mapped.used;
  if (!map_span(base, low_end) || !map_span(kTwoGigabytes, end)) {
    while (mapped.used > before) { // the program has limits of its own, and may need them
      const Span &span = mapped.spans[--mapped.used];
      give_back((void *)span.begin, span.end - span.begin);
    }
    return false;
  }
  if (mapped.shadow_count < kMaxShadows)
    mapped.shadows[mapped.shadow_count++] = {shift, base};
  return true;
}

void empty_shadow(unsigned shift, uint64_t base) {
  const uint64_t end = (ASSAY_HIGH_END >> shift) + base;
  for (int i = 0; i < mapped.used; i++) {
    uint64_t from = mapped.spans[i].begin, to = mapped.spans[i].end;
    from = from < base ? base : from;
    to = to < end ? to : end;
    if (from < to)
      empty_span((void *)from, to - from);
  }
}

static void reset_shadow_in_child() {
  mapped.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_shadow_in_child);

bool reserve_span(uint64_t begin, uint64_t end) {
  Locked locked(mapped.lock);
  return map_span(begin, end);
}

bool map_before_start(uint64_t address) {
  constexpr uint64_t kEarlyPiece = 64 << 10;
  const uint64_t begin = address & ~(kEarlyPiece - 1), end = begin + kEarlyPiece;
  return !assay_in_program_window(begin, end) && end <= ASSAY_HIGH_END && map_span(begin, end);
}

void note_own_span(uint64_t begin, uint64_t end) {
  Locked locked(mapped.lock);
  if (mapped.other_count < kMaxOther)
    mapped.other[mapped.other_count++] = {begin, end};
}

void note_spare_span(uint64_t begin, uint64_t end) {
  Locked locked(mapped.lock);
  if (mapped.used < kMaxSpans)
    mapped.spans[mapped.used++] = {begin, end};
}

namespace {

// Takes [begin, end) out of the spans. Under the lock.
bool cut_out(uint64_t begin, uint64_t end, bool unmaps) {
  for (int i = 0; i < mapped.used; i++) {
    Span &span = mapped.spans[i];
    if (!overlap(span, {begin, end}))
      continue;
    const Span lost = {begin > span.begin ? begin : span.begin, end < span.end ? end : span.end};
    if (span.end > end) { // the part behind, or all of it
      if (span.begin < begin && mapped.used == kMaxSpans)
        return false;
      Span &rest = span.begin < begin ? mapped.spans[mapped.used++] : span;
      rest = {end, span.end};
      if (&rest != &span)
        span.end = lost.begin;
    } else {
      span.end = lost.begin;
    }
    if (unmaps)
      sys::unmap((void *)lost.begin, lost.end - lost.begin);
  }
  return true;
}

bool leave(uint64_t begin, uint64_t end, bool unmaps) {
  Locked locked(mapped.lock);
  return !is_in_use({begin, end}) && cut_out(begin, end, unmaps);
}

} // namespace

bool give_way(uint64_t begin, uint64_t end) {
  return leave(begin, end, false);
}

bool make_room(uint64_t begin, uint64_t end) {
  return leave(begin, end, true);
}

namespace {

// Programs map at such addresses again and again: a mapping that touches a noted one widens it, and
// so does the last one where there are too many.
void note_odd(Span mapping) {
  for (int i = 0; i < mapped.odd_count; i++) {
    Span &known = mapped.odd[i];
    bool touches = mapping.begin <= known.end && known.begin <= mapping.end;
    if (!touches && (mapped.odd_count < kMaxOdd || i + 1 < mapped.odd_count))
      continue;
    known.begin = mapping.begin < known.begin ? mapping.begin : known.begin;
    known.end = mapping.end > known.end ? mapping.end : known.end;
    return;
  }
  mapped.odd[mapped.odd_count++] = mapping;
}

} // namespace

bool cover_mapping(uint64_t begin, uint64_t end) {
  if (assay_in_program_window(begin, end) || end <= kTwoGigabytes)
    return true;
  Locked locked(mapped.lock);
  bool good = true;
  for (int i = 0; good && i < mapped.shadow_count; i++) {
    const auto &shadow = mapped.shadows[i];
    uint64_t from = ((begin >> shadow.shift) + shadow.base) & ~(kPiece - 1);
    uint64_t to = (((end - 1) >> shadow.shift) + shadow.base + kPiece) & ~(kPiece - 1);
    good = map_span(from, to);
  }
  if (good)
    note_odd({begin, end});
  return good;
}

} // namespace assay
