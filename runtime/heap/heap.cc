// The heap profiler inside the program: what happens to a block becomes facts about its allocation
// context. At a free (or at a walk of the live blocks) the counters of the block's 64-byte blocks
// are summed up, joined with the header's facts and merged into the table.
//
// Source: heap-profiler.txt, "Runtime".

#include "abi/sites.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/process/live_walk.h"
#include "runtime/core/runtime.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/tool_callbacks.h"
#include "runtime/heap/compaction.h"
#include "runtime/heap/counters.h"
#include "runtime/heap/free_sites.h"
#include "runtime/heap/hib_table.h"
#include "runtime/heap/live_bytes.h"
#include "runtime/heap/non_heap.h"
#include "runtime/heap/shared_blocks.h"
#include "runtime/heap/stripes.h"
#include "runtime/heap/text.h"
#include "runtime/heap/wrap.h"

namespace assay::heap {
namespace {

struct {
  HibTable freed;
  HibTable live; // of the walk in progress
  uint64_t walk; // number of the newest walk
  WalkPace pace;
  uint64_t next_check_us; // at counters that may wrap
  uint64_t walked_objects, walked_bytes;
  uint32_t written_mode; // of the units, in this file
  bool mapped;           // the counters are: other threads look at them from then on
} constinit heap = {};

bool map_shadow() {
  const bool mapped = map_counters();
  __atomic_store_n(&heap.mapped, mapped, __ATOMIC_RELEASE);
  if (!mapped)
    count_loss(ASSAY_LOSS_no_shadow, 1);
  return mapped;
}

bool has_shadow(const void *block, uint64_t size) {
  if (!heap.mapped)
    return false;
  uint64_t begin = (uint64_t)block, end = begin + size;
  if (counters_are_elsewhere()) // at a base of its own, the shadow covers all addresses
    return end <= ASSAY_HIGH_END;
  if (used_stripes > 1)
    return in_stripes(begin, end);
  return assay_in_program_window(begin, end);
}

// What was counted in a block so far.
Counts counts_of(const void *block, const ChunkHeader &h, bool take) {
  if (!has_shadow(block, h.size))
    return {0, 0, blocks_spanned(block, h.size), 0, 0};
  Counts counts = count_accesses(block, h.size,
                                 take                      ? ReadMode::kTake
                                 : h.flags & kSharedBlocks ? ReadMode::kShare
                                                           : ReadMode::kKeep);
  if (may_have_wrapped(block, h))
    add_wrapped(block, h.size, counts, take);
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

bool start() {
  if (runtime.instrumented && !map_shadow())
    return false;
  auto write_freed = [](const HibEntry &e) {
    AssayHeapFreed record = {(uint32_t)e.context, e.hib, e.histograms};
    runtime.file.append(ASSAY_RECORD_HeapFreed, record);
    print_hib(e, false);
  };
  auto write_live = [](const HibEntry &e) {
    AssayHeapLive record = {heap.walk, (uint32_t)e.context, e.hib, e.histograms};
    runtime.file.append(ASSAY_RECORD_HeapLive, record);
    print_hib(e, true);
  };
  if (create_watch() && create_live_bytes() && create_free_sites() && create_shared_blocks() &&
      heap.live.create(1021, 4, HibTable::Users::kOne, write_live) &&
      heap.freed.create(runtime.options.hib_sets, runtime.options.hib_ways, HibTable::Users::kMany,
                        write_freed))
    return true;
  count_loss(ASSAY_LOSS_no_memory, 1);
  return false;
}

void on_allocation(const Allocation &a) {
  if (has_shadow(a.block, a.header.size)) {
    if (a.header.flags & kSharedBlocks) {
      zero_own_counters(a.block, a.header.size);
      if ((uint64_t)a.block % block_bytes())
        count_loss_quietly(ASSAY_LOSS_shared_counters, 1);
    } else
      zero_counters(a.block, a.header.size);
  } else if (heap.mapped)
    count_loss(ASSAY_LOSS_odd_address, 1);
  count_allocation();
  add_live(a.header.context, a.header.size, 1);
}

// An object that shrinks in place keeps what was counted in the ends that it loses: its first and last
// blocks take it.
void keep_counts_of_lost_ends(const Realloc &r) {
  uint64_t begin = (uint64_t)r.block, end = begin + r.header.size;
  uint64_t old_begin = (uint64_t)r.old_block, old_end = old_begin + r.old_size;
  if (!r.header.size)
    return;
  if (old_begin < begin)
    move_counters(r.old_block, begin - old_begin, r.block, 1);
  uint64_t first_lost = (end + block_bytes() - 1) & ~(block_bytes() - 1);
  if (first_lost < old_end)
    move_counters((void *)first_lost, old_end - first_lost, (void *)(end - 1), 1);
}

void on_realloc(const Realloc &r) {
  ContextId context = r.header.context;
  if (r.moved && has_shadow(r.old_block, r.old_size) && has_shadow(r.block, r.header.size)) {
    if (r.was_watched)
      watch_counters(r.old_block, r.old_size);
    move_counters(r.old_block, r.old_size, r.block, r.header.size);
    if (r.was_watched)
      move_wrapped(r.old_block, r.old_size, r.block);
  }
  if (!r.moved && has_shadow(r.old_block, r.old_size))
    keep_counts_of_lost_ends(r);
  take_live(context, r.old_size, 0);
  add_live(context, r.header.size, 0);
  AssayHib facts;
  assay_hib_clear(&facts);
  facts.realloc_count = 1;
  if (r.moved)
    facts.realloc_moved_bytes = r.old_size < r.header.size ? r.old_size : r.header.size;
  heap.freed.add_facts(context, facts);
}

void on_split(const Split &s) {
  const ContextId context = s.header.context;
  const uint64_t hole = (uint64_t)s.block + s.header.size;
  if (has_shadow(s.block, s.old_size))
    move_counters((void *)hole, (uint64_t)s.rest - hole, (void *)(hole - 1), 1);
  count_allocation();
  take_live(context, s.old_size, 0);
  add_live(context, s.header.size, 0);
  add_live(context, s.rest_header.size, 1);
}

void on_free(const Free &f) {
  if (may_have_wrapped(f.block, f.header) && has_shadow(f.block, f.header.size))
    watch_counters(f.block, f.header.size); // the last look, before the counters are zeroed
  Counts counts = counts_of(f.block, f.header, true);
  AssayObject o = object_of(f.header, counts, now());
  o.temporary = f.temporary;
  take_live(f.header.context, f.header.size, 1);
  heap.freed.add(f.header.context, o);
  if (f.context != kNoContext)
    add_free_site(f.header.context, f.context, o.size);
}

void on_pool_memory(const PoolMemory &w) {
  end_live_without_peak(w.header.context, w.header.size);
}

bool is_recorded(const ChunkHeader &h) {
  return !is_inherited(h) && !(h.flags & kPoolMemory);
}

void walk_one(const void *block, const ChunkHeader &h) {
  if (!is_recorded(h) || is_born_after(h, heap.pace.began_us()))
    return;
  const bool is_counted = has_shadow(block, h.size);
  if (is_counted && h.flags & kSharedBlocks) // its counts are shared out once
    watch_counters(block, h.size);
  Counts counts = counts_of(block, h, false);
  if (is_counted && !(h.flags & kSharedBlocks) &&
      (may_be_large(counts) || may_have_wrapped(block, h))) {
    watch_counters(block, h.size);
    counts = counts_of(block, h, false);
  }
  heap.live.add(h.context, object_of(h, counts, {heap.pace.began_us(), h.cpu}));
  heap.walked_objects++;
  heap.walked_bytes += h.size;
}

void walk_live(FlushKind kind) {
  heap.walk++;
  heap.pace.begin();
  heap.walked_objects = heap.walked_bytes = 0;
  begin_shared_blocks();
  if (totals()
          .live_objects) // none, often, in the child of a fork, to which the map still shows those of its parent
    for_each_live(walk_one);
  watch_non_heap();
  heap.live.write_all();
  if (kind == FlushKind::kFull)
    write_non_heap(heap.walk);
  runtime.file.append(ASSAY_RECORD_HeapWalk, AssayHeapWalk{heap.walk, heap.pace.began_us(),
                                                           heap.walked_objects, heap.walked_bytes});
  const uint64_t look = next_check_after(heap.pace.took_us());
  heap.next_check_us = now_us() + look + look / 8; // where walks are rare, the next one comes first
  heap.pace.end(look);                             // each flush, if they are cheap
}

void check_one(const void *block, const ChunkHeader &h) {
  if (is_recorded(h) && has_shadow(block, h.size))
    watch_counters(block, h.size);
}

bool may_be_large_in(uint64_t begin, uint64_t end) {
  if (!heap.mapped)
    return false;
  return !has_shadow((void *)begin, end - begin) || has_large_counter(begin, end);
}

// Between walks, which write, counters that may wrap are only looked at.
uint64_t on_poll() {
  if (!can_wrap() || !is_recording())
    return ~0ULL;
  uint64_t begin = now_us();
  if (begin < heap.next_check_us)
    return heap.next_check_us - begin;
  FlushesWait flushes;
  for_each_live(check_one, may_be_large_in);
  watch_non_heap();
  uint64_t now = now_us(), wait = next_check_after(now - begin);
  heap.next_check_us = now + wait;
  return wait;
}

void on_flush(FlushKind kind) {
  if (units.has_fixed_base && counters_are_elsewhere()) {
    count_loss(ASSAY_LOSS_no_shadow, 1);
    units.has_fixed_base = false; // said
  }
  heap.freed.write_all();
  if (runtime.options.free_stacks)
    write_free_sites();
  if (kind == FlushKind::kFull || heap.pace.is_due(totals().live_objects))
    walk_live(kind);
  if (kind == FlushKind::kFull)
    write_peaks();
  print_contexts();
  const Totals &t = totals();
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
  if (runtime.options.free_stacks)
    clear_free_sites();
  reset_peaks();
  zero_non_heap();
  for_each_live([](const void *block, const ChunkHeader &h) {
    if (has_shadow(block, h.size))
      count_accesses(block, h.size, ReadMode::kTake);
  });
}

void on_instrumented() {
  map_shadow();
}

void write_mode() {
  heap.written_mode = units.mode;
  if (units.mode)
    runtime.file.append(ASSAY_RECORD_CounterMode, AssayCounterMode{units.mode});
}

void on_module(const ModuleSites &) {
  if (units.mode != heap.written_mode)
    write_mode();
  if (units.mode & ASSAY_COUNTERS_STACK)
    note_own_stack(); // the main thread's is the first
}

void on_thread_start() {
  take_stripe();
  if (units.mode & ASSAY_COUNTERS_STACK)
    note_own_stack();
}

void on_unload(ModuleId module) {
  if (units.mode & ASSAY_COUNTERS_GLOBALS)
    end_globals(module);
}

void on_fork() {
  if (heap.mapped)
    reset_counters_in_child();
  reset_stripes_in_child();
  heap.freed.reset_in_child();
  heap.live.reset_in_child();
  reset_watch_in_child();
  reset_live_bytes_in_child();
  reset_text_in_child();
  if (runtime.options.free_stacks)
    reset_free_sites_in_child();
}

// Counters are reached through the gs segment (abi/stripes.h). A program that sets its base itself faults at the next
// access, and nobody would guess why.
const char *why_fault() {
  constexpr int kGetGs = 0x1004; // ARCH_GET_GS
  uint64_t base = 0;
  if (!runtime.instrumented || sys::failed(sys::call(SYS_arch_prctl, kGetGs, (long)&base)) ||
      base == own_stripe)
    return nullptr;
  return "the program has set the base of its gs segment, through which Assay reaches its "
         "counters, "
         "so it faults here; "
         "build it with -fassay=workingset, which needs no gs, or leave the segment alone";
}

} // namespace

constinit UnitMode units = {};

extern const Subscriber subscriber;
constinit const Subscriber subscriber = {
    .name = "heap",
    .on_unit =
        [](uint32_t mode) {
          return units.take(mode, ASSAY_COUNTERS_LAYOUT, ASSAY_COUNTERS_DYNAMIC);
        },
    .start = start,
    .on_begin = write_mode,
    .wants_allocations = [] { return true; },
    .wants_objects = [] { return true; },
    .on_allocation = on_allocation,
    .on_realloc = on_realloc,
    .on_split = on_split,
    .on_free = on_free,
    .on_pool_memory = on_pool_memory,
    .on_flush = on_flush,
    .on_reset = on_reset,
    .on_poll = on_poll,
    .on_instrumented = on_instrumented,
    .on_thread_start = on_thread_start,
    .on_module = on_module,
    .on_unload = on_unload,
    .on_fork = on_fork,
    .why_fault = why_fault,
    .compactor = &compactor,
};

} // namespace assay::heap
