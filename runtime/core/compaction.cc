// Every flush appends what changed, so a server that runs for days would fill a disk with records that
// belong together. They are joined as a reader would: blocks of one context into one, losses, events
// and free contexts added up, only the last walk and the last peaks kept, the timeline thinned. Every
// other record is copied. The sums live only while this works.
//
// The file is read and not remembered: keeping the sums in memory all the time would cost a kilobyte a
// context for the few runs that ever come here.

#include "runtime/core/compaction.h"

#include "runtime/core/file_records.h"
#include "runtime/core/key_table.h"
#include "runtime/core/runtime.h"

namespace assay {
namespace {

constexpr uint64_t kMostPoints = 2048; // of the timeline

struct Sums {
  AssayHib hib;
  AssayHibHistograms histograms;
  AssayHeapPeak peak;
  AssayRecursion recursion;
};

struct Pair {
  uint64_t key; // 0: free
  AssayHeapFreeContext sums;
};
struct Named {
  uint64_t key; // 0: free
  AssayEvent sums;
  const uint8_t *name;
  uint32_t name_size;
};

class Compaction {
public:
  static bool rewrite(const uint8_t *from, size_t size, ProfileFile &to) {
    Compaction c(to);
    bool good = c.reserve_tables() &&
                each_record(from, size, [&](const FileRecord &r) { return c.look(r); }) &&
                each_record(from, size, [&](const FileRecord &r) { return c.take(r); });
    if (good)
      c.write_sums();
    c.release_tables();
    return good;
  }

private:
  explicit Compaction(ProfileFile &to) : to_(to) {}

  // First: what is there, and what a reset has made void.
  bool look(const FileRecord &r) {
    records_++;
    if (r.header.kind == ASSAY_RECORD_HeapWalk)
      last_walk_ = r.as<AssayHeapWalk>().walk;
    if (r.header.kind == ASSAY_RECORD_Reset)
      after_ = records_;
    if (r.header.kind == ASSAY_RECORD_HeapTimeline)
      points_++;
    return true;
  }

  bool take(const FileRecord &r) {
    bool is_void = ++taken_ < after_;
    switch (r.header.kind) {
    case ASSAY_RECORD_HeapFreed: return is_void || add(r.as<AssayHeapFreed>());
    case ASSAY_RECORD_HeapPeak: return is_void || add(r.as<AssayHeapPeak>());
    case ASSAY_RECORD_Recursion: return is_void || add(r.as<AssayRecursion>());
    case ASSAY_RECORD_HeapFreeContext: return is_void || add(r.as<AssayHeapFreeContext>());
    case ASSAY_RECORD_Event: return is_void || add(r.as<AssayEvent>(), r);
    case ASSAY_RECORD_Loss: return add(r.as<AssayLoss>());
    case ASSAY_RECORD_HeapLive:
      return copy(r, !is_void && r.as<AssayHeapLive>().walk == last_walk_);
    case ASSAY_RECORD_HeapOutside: {
      uint64_t walk = r.as<AssayHeapOutside>().walk;
      return copy(r, !is_void && (walk == 0 || walk == last_walk_));
    }
    case ASSAY_RECORD_HeapWalk:
      return copy(r, !is_void && r.as<AssayHeapWalk>().walk == last_walk_);
    case ASSAY_RECORD_HeapTimeline:
      return copy(r, !is_void && point_++ % (1 + points_ / kMostPoints) == 0);
    default: return copy(r, true);
    }
  }

  bool copy(const FileRecord &r, bool wanted) {
    if (wanted)
      to_.append_bytes((AssayRecordKind)r.header.kind, r.fixed, r.header.fixed_size, r.tail,
                       r.tail_size);
    return true;
  }

  Sums *sums_of(uint64_t context) {
    if (context >= StackDepot::kMaxContexts)
      return nullptr;
    if (context > most_context_)
      most_context_ = context;
    return &sums_[context];
  }

  bool add(const AssayHeapFreed &r) {
    Sums *s = sums_of(r.context);
    if (!s)
      return false;
    if (s->hib.alloc_count == 0 && s->hib.realloc_count == 0)
      assay_hib_clear(&s->hib);
    assay_hib_join(&s->hib, &r.hib, 1);
    for (size_t i = 0; i < ASSAY_HISTOGRAM_BUCKETS; i++) {
      s->histograms.size[i] += r.histograms.size[i];
      s->histograms.lifetime_us[i] += r.histograms.lifetime_us[i];
    }
    return true;
  }
  bool add(const AssayHeapPeak &r) {
    if (Sums *s = sums_of(r.context)) {
      s->peak = r;
      return true;
    }
    return false;
  }
  bool add(const AssayRecursion &r) {
    if (Sums *s = sums_of(r.context)) {
      s->recursion = r;
      return true;
    }
    return false;
  }
  bool add(const AssayHeapFreeContext &r) {
    Pair *p = find(pairs_, kPairs, r.context << 32 | r.free_context, kPairs);
    if (p) {
      p->sums = {r.context, r.free_context, p->sums.count + r.count, p->sums.bytes + r.bytes};
      return true;
    }
    return false;
  }
  bool add(const AssayEvent &r, const FileRecord &record) {
    uint64_t name = assay_checksum(record.tail, record.tail_size, 0);
    Named *n = find(events_, kEvents, r.context << 32 | name, kEvents);
    if (n) {
      n->sums = {r.context, n->sums.count + r.count, n->sums.weight + r.weight};
      n->name = record.tail;
      n->name_size = (uint32_t)record.tail_size;
      return true;
    }
    return false;
  }
  bool add(const AssayLoss &r) {
    if (r.kind >= kLosses)
      return false;
    losses_[r.kind] += r.count;
    return true;
  }

  void write_sums() {
    for (uint64_t i = 1; i <= most_context_; i++) {
      const Sums &s = sums_[i];
      if (s.hib.alloc_count || s.hib.realloc_count)
        to_.append(ASSAY_RECORD_HeapFreed, AssayHeapFreed{i, s.hib, s.histograms});
      if (s.peak.context)
        to_.append(ASSAY_RECORD_HeapPeak, s.peak);
      if (s.recursion.context)
        to_.append(ASSAY_RECORD_Recursion, s.recursion);
    }
    for (uint64_t i = 0; i < kPairs; i++)
      if (pairs_[i].key)
        to_.append(ASSAY_RECORD_HeapFreeContext, pairs_[i].sums);
    for (uint64_t i = 0; i < kEvents; i++)
      if (events_[i].key)
        to_.append(ASSAY_RECORD_Event, events_[i].sums, events_[i].name, events_[i].name_size);
    for (uint64_t i = 0; i < kLosses; i++)
      if (losses_[i])
        to_.append(ASSAY_RECORD_Loss, AssayLoss{i, losses_[i]});
  }

  bool reserve_tables() {
    sums_ = (Sums *)reserve(kSumsBytes);
    pairs_ = (Pair *)reserve(kPairs * sizeof(Pair));
    events_ = (Named *)reserve(kEvents * sizeof(Named));
    return sums_ && pairs_ && events_;
  }
  void release_tables() {
    if (sums_)
      sys::unmap(sums_, kSumsBytes);
    if (pairs_)
      sys::unmap(pairs_, kPairs * sizeof(Pair));
    if (events_)
      sys::unmap(events_, kEvents * sizeof(Named));
  }

  static constexpr uint64_t kPairs = 1 << 20, kEvents = 1 << 16, kLosses = 64;
  static constexpr uint64_t kSumsBytes = StackDepot::kMaxContexts * sizeof(Sums);
  ProfileFile &to_;
  Sums *sums_ = nullptr;
  Pair *pairs_ = nullptr;
  Named *events_ = nullptr;
  uint64_t losses_[kLosses] = {};
  uint64_t most_context_ = 0, last_walk_ = 0;
  uint64_t records_ = 0, taken_ = 0, after_ = 0; // the record of the last reset, from 1
  uint64_t points_ = 0, point_ = 0;
};

struct {
  uint64_t next_bytes;
} constinit state = {};

} // namespace

void compact_if_large() {
  uint64_t limit = runtime.options.compact_bytes, bytes = runtime.file.bytes();
  if (!limit || bytes <= (state.next_bytes > limit ? state.next_bytes : limit))
    return;
  uint64_t left = runtime.file.replace(Compaction::rewrite);
  state.next_bytes = 2 * (left ? left : bytes); // if it cannot be done, it may be later
}

void forget_compaction() {
  state.next_bytes = 0;
}

} // namespace assay
