// The bytes of each context at the program's peak are found lazily: a context that has not changed
// since the peak still has them.

#include "runtime/heap/live_bytes.h"

#include "runtime/core/runtime.h"

namespace assay::heap {
namespace {

struct ContextStats {
  uint64_t live_bytes, peak_bytes, at_peak_bytes;
  uint64_t peak_number; // of the program's peak that at_peak_bytes belongs to
  bool changed;         // since the last write
};

struct {
  GrowingArray<ContextStats, StackDepot::kMaxContexts> contexts;
  Totals totals;
  uint64_t peak_number; // of the newest peak
} constinit live = {};

void settle_peak(ContextStats &c) {
  if (c.peak_number == live.peak_number)
    return;
  c.at_peak_bytes = c.live_bytes;
  c.peak_number = live.peak_number;
}

ContextStats &stats_of(ContextId context) {
  return live.contexts[(uint32_t)context];
}

template <typename F> void each_context(F f) {
  for (uint32_t i = 1, end = runtime.depot.end(); i < end; i++)
    f(ContextId{i}, stats_of(ContextId{i}));
}

} // namespace

bool create_live_bytes() {
  return live.contexts.create();
}

void count_allocation() {
  add_to(live.totals.allocations, (uint64_t)1);
}

void add_live(ContextId context, uint64_t bytes, uint64_t objects) {
  ContextStats &c = stats_of(context);
  settle_peak(c);
  c.changed = true;
  add_to(c.live_bytes, bytes);
  if (c.live_bytes > c.peak_bytes)
    c.peak_bytes = c.live_bytes;
  Totals &t = live.totals;
  add_to(t.live_objects, objects);
  add_to(t.live_bytes, bytes);
  if (t.live_bytes > t.peak_bytes) {
    t.peak_bytes = t.live_bytes;
    live.peak_number++;
  }
}

void take_live(ContextId context, uint64_t bytes, uint64_t objects) {
  ContextStats &c = stats_of(context);
  settle_peak(c);
  c.changed = true;
  add_to(c.live_bytes, (uint64_t)0 - bytes);
  add_to(live.totals.live_bytes, (uint64_t)0 - bytes);
  add_to(live.totals.live_objects, (uint64_t)0 - objects);
}

void end_live_without_peak(ContextId context, uint64_t bytes) {
  ContextStats &c = stats_of(context);
  if (c.peak_bytes == c.live_bytes)
    c.peak_bytes -= bytes;
  if (live.totals.peak_bytes == live.totals.live_bytes)
    live.totals.peak_bytes -= bytes;
  take_live(context, bytes, 1);
}

const Totals &totals() {
  return live.totals;
}

void write_peaks() {
  each_context([](ContextId context, ContextStats &c) {
    if (!c.changed && c.peak_number == live.peak_number)
      return;
    c.changed = false;
    if (!c.peak_bytes)
      return;
    uint64_t at_peak = c.peak_number == live.peak_number ? c.at_peak_bytes : c.live_bytes;
    runtime.file.append(ASSAY_RECORD_HeapPeak,
                        AssayHeapPeak{(uint32_t)context, c.peak_bytes, at_peak});
  });
}

void reset_peaks() {
  live.totals.allocations = 0;
  live.totals.peak_bytes = live.totals.live_bytes;
  live.peak_number++;
  each_context([](ContextId, ContextStats &c) {
    c.peak_bytes = c.live_bytes;
    c.changed = true;
  });
}

void reset_live_bytes_in_child() {
  live.totals = {};
  live.contexts.clear();
}

} // namespace assay::heap
