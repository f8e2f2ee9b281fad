// How much is alive: of the whole program and of each context, now and at their peaks.
//
// Exact in single-threaded programs. With threads each add is atomic, but two adds at the same moment
// may both miss the very top of a peak.
#pragma once

#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay::heap {

struct Totals {
  uint64_t live_bytes, live_objects, peak_bytes, allocations;
};

bool create_live_bytes();

void count_allocation();
void add_live(ContextId context, uint64_t bytes, uint64_t objects);
void take_live(ContextId context, uint64_t bytes, uint64_t objects);
// As take_live of an object that should never have been one: a peak that it has just made goes too.
void end_live_without_peak(ContextId context, uint64_t bytes);
const Totals &totals();

// Writes the peaks that changed since the last time.
void write_peaks();

// From now on the peaks are what is alive; and in the child of a fork, where nothing is.
void reset_peaks();
void reset_live_bytes_in_child();

} // namespace assay::heap
