// Blocks of one context become one, free contexts are added up, only the last walk and the last peaks are kept, and the
// timeline is thinned.

#include "runtime/heap/compaction.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/key_table.h"

namespace assay::heap {
namespace {

constexpr uint64_t kMaxPoints = 2048; // of the timeline
constexpr uint64_t kPairs = 1 << 20;

struct Sums {
  AssayHib hib;
  AssayHibHistograms histograms;
  AssayHeapPeak peak;
};
constexpr uint64_t kSumsBytes = StackDepot::kMaxContexts * sizeof(Sums);

struct Pair {
  uint64_t key; // 0: free
  AssayHeapFreeContext sums;
};

// While a compaction works.
struct {
  Sums *sums; // by context
  Pair *pairs;
  uint64_t last_context, last_walk;
  uint64_t points, point;
} constinit work = {};

bool begin() {
  work = {};
  work.sums = (Sums *)reserve(kSumsBytes);
  work.pairs = (Pair *)reserve(kPairs * sizeof(Pair));
  return work.sums && work.pairs;
}

void end() {
  if (work.sums)
    sys::unmap(work.sums, kSumsBytes);
  if (work.pairs)
    sys::unmap(work.pairs, kPairs * sizeof(Pair));
  work = {};
}

void look(const FileRecord &r) {
  if (r.header.kind == ASSAY_RECORD_HeapWalk)
    work.last_walk = r.as<AssayHeapWalk>().walk;
  if (r.header.kind == ASSAY_RECORD_HeapTimeline)
    work.points++;
}

Sums *sums_of(uint64_t context) {
  if (context >= StackDepot::kMaxContexts)
    return nullptr;
  if (context > work.last_context)
    work.last_context = context;
  return &work.sums[context];
}

Compacted add(const AssayHeapFreed &r) {
  Sums *s = sums_of(r.context);
  if (!s)
    return Compacted::kFailed;
  if (s->hib.alloc_count == 0 && s->hib.realloc_count == 0)
    assay_hib_clear(&s->hib);
  assay_hib_merge(&s->hib, &r.hib, 1);
  assay_histograms_add(&s->histograms, &r.histograms);
  return Compacted::kDone;
}

Compacted add(const AssayHeapPeak &r) {
  Sums *s = sums_of(r.context);
  if (!s)
    return Compacted::kFailed;
  s->peak = r;
  return Compacted::kDone;
}

Compacted add(const AssayHeapFreeContext &r) {
  Pair *p = find(work.pairs, kPairs, r.context << 32 | r.free_context, kPairs);
  if (!p)
    return Compacted::kFailed;
  p->sums = {r.context, r.free_context, p->sums.count + r.count, p->sums.bytes + r.bytes};
  return Compacted::kDone;
}

Compacted take(const FileRecord &r, bool is_void, ProfileFile &to) {
  switch (r.header.kind) {
  case ASSAY_RECORD_HeapFreed: return is_void ? Compacted::kDone : add(r.as<AssayHeapFreed>());
  case ASSAY_RECORD_HeapPeak: return is_void ? Compacted::kDone : add(r.as<AssayHeapPeak>());
  case ASSAY_RECORD_HeapFreeContext:
    return is_void ? Compacted::kDone : add(r.as<AssayHeapFreeContext>());
  case ASSAY_RECORD_HeapLive:
    return copy_record(r, !is_void && r.as<AssayHeapLive>().walk == work.last_walk, to);
  case ASSAY_RECORD_NonHeap: {
    uint64_t walk = r.as<AssayNonHeap>().walk;
    return copy_record(r, !is_void && (walk == 0 || walk == work.last_walk), to);
  }
  case ASSAY_RECORD_HeapWalk:
    return copy_record(r, !is_void && r.as<AssayHeapWalk>().walk == work.last_walk, to);
  case ASSAY_RECORD_HeapTimeline:
    return copy_record(r, !is_void && work.point++ % (1 + work.points / kMaxPoints) == 0, to);
  default: return Compacted::kNotMine;
  }
}

void write_sums(ProfileFile &to) {
  for (uint64_t i = 1; i <= work.last_context; i++) {
    const Sums &s = work.sums[i];
    if (s.hib.alloc_count || s.hib.realloc_count)
      to.append(ASSAY_RECORD_HeapFreed, AssayHeapFreed{i, s.hib, s.histograms});
    if (s.peak.context)
      to.append(ASSAY_RECORD_HeapPeak, s.peak);
  }
  for (uint64_t i = 0; i < kPairs; i++)
    if (work.pairs[i].key)
      to.append(ASSAY_RECORD_HeapFreeContext, work.pairs[i].sums);
}

} // namespace

constinit const Compactor compactor = {begin, look, take, write_sums, end};

} // namespace assay::heap
