// The heap profiler inside the program: what happens to a block becomes facts about its allocation
// context. At a free (or at a walk of the live blocks) the counters of the block's 64-byte blocks
// are summed up, joined with the header's facts and merged into the table.
//
// Live totals and peaks are exact in single-threaded programs. With threads each add is atomic, but
// two adds at the same moment may both miss the very top of a peak.
//
// Source: heap-profiler.txt, "Runtime".

#include "runtime/core/events.h"
#include "runtime/core/losses.h"
#include "runtime/core/runtime.h"
#include "runtime/heap/counters.h"
#include "runtime/heap/hib_table.h"
#include "runtime/heap/live_walk.h"
#include "runtime/heap/wrap.h"

namespace assay::heap {
namespace {

// Live and peak bytes of one context. The bytes at the program's peak are found lazily: a context
// that has not changed since the peak still has them.
struct ContextStats {
  uint64_t live_bytes, peak_bytes, at_peak_bytes;
  uint64_t peak_number; // of the program's peak that at_peak_bytes belongs to
  bool changed;         // since the last write
};

struct Totals {
  uint64_t live_bytes, live_objects, peak_bytes, allocations;
  uint64_t peak_number; // of the newest peak
};

struct {
  HibTable freed;
  HibTable live; // of the walk in progress
  GrowingArray<ContextStats, StackDepot::kMaxContexts> contexts;
  Totals totals;
  uint64_t walk;          // number of the newest walk
  uint64_t walk_began_us; // the walk's moment: all live objects end there
  uint64_t next_walk_us;  // a flush before that does not walk
  uint64_t walked_objects, walked_bytes;
  uint64_t fork_us; // blocks allocated before belong to the parent
} constinit heap = {};

template <typename T> void add(T &to, T n) {
  if (single_threaded())
    to += n;
  else
    __atomic_fetch_add(&to, n, __ATOMIC_RELAXED);
}

void settle_peak(ContextStats &c) {
  if (c.peak_number == heap.totals.peak_number)
    return;
  c.at_peak_bytes = c.live_bytes;
  c.peak_number = heap.totals.peak_number;
}

void add_live(uint32_t context, uint64_t bytes, uint64_t objects) {
  ContextStats &c = heap.contexts[context];
  settle_peak(c);
  c.changed = true;
  add(c.live_bytes, bytes);
  if (c.live_bytes > c.peak_bytes)
    c.peak_bytes = c.live_bytes;
  Totals &t = heap.totals;
  add(t.live_objects, objects);
  add(t.live_bytes, bytes);
  if (t.live_bytes > t.peak_bytes) {
    t.peak_bytes = t.live_bytes;
    t.peak_number++;
  }
}

void take_live(uint32_t context, uint64_t bytes, uint64_t objects) {
  ContextStats &c = heap.contexts[context];
  settle_peak(c);
  c.changed = true;
  add(c.live_bytes, (uint64_t)0 - bytes);
  add(heap.totals.live_bytes, (uint64_t)0 - bytes);
  add(heap.totals.live_objects, (uint64_t)0 - objects);
}

bool has_shadow(const void *block, uint64_t size) {
  if (!runtime.instrumented)
    return false;
  uint64_t begin = (uint64_t)block, end = begin + size;
  return end <= ASSAY_LOW_END || (begin >= ASSAY_HIGH_BEGIN && end <= ASSAY_HIGH_END);
}

// What was counted in a block so far.
Counts counts_of(const void *block, uint64_t size, bool take) {
  Counts counts = {};
  if (!has_shadow(block, size)) {
    counts.blocks_spanned = blocks_spanned(block, size);
    return counts;
  }
  counts = count_accesses(block, size, take);
  if (runtime.chunks.marked(block))
    add_wrapped(block, size, counts, take);
  return counts;
}

AssayObject object_of(const ChunkHeader &h, const Counts &counts, Moment end) {
  AssayObject o = {};
  o.size = h.size;
  o.reads = counts.reads;
  o.writes = counts.writes;
  o.alloc_us = h.time_us;
  o.free_us = end.us;
  o.blocks_spanned = counts.blocks_spanned;
  o.blocks_touched = counts.blocks_touched;
  o.touched_bytes = counts.touched_bytes;
  o.alloc_cpu = h.cpu;
  o.free_cpu = end.cpu;
  return o;
}

bool inherited(const ChunkHeader &h) {
  return h.time_us < heap.fork_us;
}

bool start() {
  if (runtime.instrumented && !map_counters()) {
    count_loss(ASSAY_LOSS_no_shadow, 1);
    return false;
  }
  auto write_freed = [](const HibEntry &e) {
    AssayHeapFreed record = {e.context, e.hib, e.histograms};
    runtime.file.append(ASSAY_RECORD_HeapFreed, record);
  };
  auto write_live = [](const HibEntry &e) {
    AssayHeapLive record = {heap.walk, e.context, e.hib, e.histograms};
    runtime.file.append(ASSAY_RECORD_HeapLive, record);
  };
  if (create_watch() && heap.contexts.create() && heap.live.create(1021, 4, write_live) &&
      heap.freed.create(runtime.options.hib_sets, runtime.options.hib_ways, write_freed))
    return true;
  count_loss(ASSAY_LOSS_no_memory, 1);
  return false;
}

void on_allocation(const Allocation &a) {
  if (has_shadow(a.block, a.header.size))
    zero_counters(a.block, a.header.size);
  else if (runtime.instrumented)
    count_loss(ASSAY_LOSS_odd_address, 1);
  add(heap.totals.allocations, (uint64_t)1);
  add_live(a.header.context, a.header.size, 1);
}

void on_realloc(const Realloc &r) {
  uint32_t context = r.header.context;
  if (inherited(r.header))
    return;
  if (r.moved && has_shadow(r.old_block, r.old_size) && has_shadow(r.block, r.header.size)) {
    if (r.was_marked)
      watch_counters(r.old_block, r.old_size);
    move_counters(r.old_block, r.old_size, r.block, r.header.size);
    if (r.was_marked)
      move_wrapped(r.old_block, r.old_size, r.block);
  }
  take_live(context, r.old_size, 0);
  add_live(context, r.header.size, 0);
  AssayHib facts;
  assay_hib_clear(&facts);
  facts.realloc_count = 1;
  if (r.moved)
    facts.realloc_moved_bytes = r.old_size < r.header.size ? r.old_size : r.header.size;
  heap.freed.add_facts(context, facts);
}

void on_free(const Free &f) {
  if (inherited(f.header))
    return;
  if (runtime.chunks.marked(f.block)) // the last look, before the counters are zeroed
    watch_counters(f.block, f.header.size);
  Counts counts = counts_of(f.block, f.header.size, true);
  AssayObject o = object_of(f.header, counts, f.when);
  o.temporary = f.temporary;
  AssayHib hib = assay_hib_of(&o);
  take_live(f.header.context, f.header.size, 1);
  heap.freed.add(f.header.context, hib, o.size, hib.lifetime_us_total);
}

void walk_one(const void *block, const ChunkHeader &h) {
  if (inherited(h) || h.time_us > heap.walk_began_us)
    return;
  if (has_shadow(block, h.size))
    watch_counters(block, h.size);
  Counts counts = counts_of(block, h.size, false);
  AssayObject o = object_of(h, counts, {heap.walk_began_us, h.cpu});
  AssayHib hib = assay_hib_of(&o);
  heap.live.add(h.context, hib, o.size, hib.lifetime_us_total);
  heap.walked_objects++;
  heap.walked_bytes += h.size;
}

void walk_live() {
  heap.walk++;
  heap.walk_began_us = now_us();
  heap.walked_objects = heap.walked_bytes = 0;
  for_each_live(walk_one);
  heap.live.write_all();
  runtime.file.append(ASSAY_RECORD_HeapWalk, AssayHeapWalk{heap.walk, heap.walk_began_us,
                                                           heap.walked_objects, heap.walked_bytes});
  uint64_t took_us = now_us() - heap.walk_began_us; // how often: see wrap.cc
  heap.next_walk_us = now_us() + (took_us < 10000   ? 99 * took_us
                                  : took_us < 50000 ? 950000 - took_us
                                                    : 9 * took_us);
}

void write_peaks() {
  for (uint32_t i = 1, end = runtime.depot.end(); i < end; i++) {
    ContextStats &c = heap.contexts[i];
    if (!c.changed && c.peak_number == heap.totals.peak_number)
      continue;
    c.changed = false;
    if (!c.peak_bytes)
      continue;
    uint64_t at_peak = c.peak_number == heap.totals.peak_number ? c.at_peak_bytes : c.live_bytes;
    runtime.file.append(ASSAY_RECORD_HeapPeak, AssayHeapPeak{i, c.peak_bytes, at_peak});
  }
}

void on_snapshot(SnapshotKind kind) {
  heap.freed.write_all();
  if (kind == SnapshotKind::kFull || now_us() >= heap.next_walk_us)
    walk_live();
  if (kind == SnapshotKind::kFull)
    write_peaks();
  const Totals &t = heap.totals;
  runtime.file.append(ASSAY_RECORD_HeapTimeline,
                      AssayHeapTimeline{now_us(), t.live_objects, t.live_bytes, t.peak_bytes});
  AssayControl progress = {};
  progress.elapsed_us = now_us();
  progress.allocations = t.allocations;
  progress.live_bytes = t.live_bytes;
  progress.peak_bytes = t.peak_bytes;
  progress.contexts = runtime.depot.end() - 1;
  progress.profile_bytes = runtime.file.bytes();
  runtime.control.publish(progress);
}

void on_reset() {
  heap.freed.clear();
}

void on_instrumented() {
  if (!map_counters())
    count_loss(ASSAY_LOSS_no_shadow, 1);
}

void on_fork() {
  heap.fork_us = now_us() + 1;
  if (runtime.instrumented)
    forget_counters();
  heap.freed.forget();
  heap.live.forget();
  forget_watch();
  for (uint32_t i = 1, end = runtime.depot.end(); i < end; i++)
    heap.contexts[i] = {};
  heap.totals = {};
}

} // namespace

extern const Subscriber subscriber;
constinit const Subscriber subscriber = {
    .name = "heap",
    .start = start,
    .on_allocation = on_allocation,
    .on_realloc = on_realloc,
    .on_free = on_free,
    .on_snapshot = on_snapshot,
    .on_reset = on_reset,
    .on_instrumented = on_instrumented,
    .on_fork = on_fork,
};

} // namespace assay::heap
