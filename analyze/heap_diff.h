// What changed between two runs, place by place.
#pragma once

#include "analyze/heap.h"

namespace analyze {

// One place that allocates objects of one type: the owner's function, whatever its line, since lines move
// when a program is changed. A place that only one of the runs has is all zeros in the other.
struct HeapDiffRow {
  image::Frame owner; // of the newer run where it is there
  std::string type;
  HeapSums old_sums, new_sums;
  bool old_counted = false, new_counted = false; // accesses to objects of the side, which has some
};

// The globals of one name, and the calls of assay_event with one: what only one run has is zeros in the other.
struct GlobalChange {
  std::string name;
  uint64_t old_reads = 0, old_writes = 0, new_reads = 0, new_writes = 0;
  uint64_t old_accesses() const { return old_reads + old_writes; }
  uint64_t new_accesses() const { return new_reads + new_writes; }
};
struct EventChange {
  std::string name;
  uint64_t old_count = 0, old_weight = 0, new_count = 0, new_weight = 0;
};

struct HeapDiff {
  std::vector<HeapDiffRow> rows; // those that differ, the largest change of bytes asked for first
  std::vector<GlobalChange> globals; // if both runs counted them: the largest change first
  std::vector<EventChange> events;   // by name
  HeapSums old_totals, new_totals;
  uint64_t old_peak_bytes = 0, new_peak_bytes = 0;
  bool reads_apart = true;       // in both
  bool accesses_measured = true; // the same; else they are no difference
  bool same =
      false; // nothing differs in counts, bytes, accesses, peak, or what is alive at the end
};

HeapDiff diff(const HeapResult &older, const HeapResult &newer);

} // namespace analyze
