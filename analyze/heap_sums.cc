// Sums of heap info blocks over contexts. Freed and live blocks are joined without a bridge: live
// objects are not in time order with freed ones.

#include "analyze/heap.h"

#include <algorithm>

namespace analyze {

HeapSums sums_of(const profile::HeapContext &context) {
  HeapSums sums;
  sums.all = context.freed;
  assay_hib_merge(&sums.all, &context.live, 0);
  sums.live = context.live;
  sums.histograms = context.freed_histograms;
  assay_histograms_add(&sums.histograms, &context.live_histograms);
  sums.peak_bytes = context.peak_bytes;
  sums.at_peak_bytes = context.at_peak_bytes;
  return sums;
}

HeapSums::HeapSums() : histograms() {
  assay_hib_clear(&all);
  assay_hib_clear(&live);
}

double HeapSums::used_share() const {
  return all.blocks_spanned ? double(all.blocks_touched) / double(all.blocks_spanned) : 1;
}

double HeapSums::mean_lifetime_us() const {
  return all.alloc_count ? double(all.lifetime_us_total) / double(all.alloc_count) : 0;
}

bool HeapSums::over_reserved() const {
  constexpr uint64_t kMinBuffer = 1024; // what is smaller is mostly a struct
  return all.size_total >= all.alloc_count * kMinBuffer && all.touched_bytes > 0 &&
         all.touched_bytes < all.size_total / 2;
}

void RecursionRow::add(const RecursionRow &other) {
  if (other.objects == 0)
    return;
  if (function.empty() || other.objects > objects)
    function = other.function;
  min = objects ? std::min(min, other.min) : other.min;
  max = std::max(max, other.max);
  objects += other.objects;
  levels += other.levels;
}

void HeapSums::add(const HeapSums &other) {
  assay_hib_merge(&all, &other.all, 0);
  assay_hib_merge(&live, &other.live, 0);
  assay_histograms_add(&histograms, &other.histograms);
  peak_bytes += other.peak_bytes;
  at_peak_bytes += other.at_peak_bytes;
  suppressed_count += other.suppressed_count;
  suppressed_bytes += other.suppressed_bytes;
}

HeapSums heap_totals(const profile::Profile &profile) {
  HeapSums totals;
  for (const profile::HeapContext &context : profile.heap)
    totals.add(sums_of(context));
  return totals;
}

uint64_t peak_live_bytes(const profile::Profile &profile) {
  uint64_t peak = 0, at_peak = 0;
  for (const profile::Process &process : profile.processes)
    for (const profile::TimelinePoint &point : process.timeline)
      peak = std::max(peak, point.peak_bytes);
  for (const profile::HeapContext &context : profile.heap)
    at_peak += context.at_peak_bytes;
  return peak ? peak : at_peak; // a run too short for a timeline
}

} // namespace analyze
