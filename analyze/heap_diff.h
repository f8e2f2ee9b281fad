// What changed between two runs, place by place.
#pragma once

#include "analyze/heap.h"
#include "analyze/named_change.h"

namespace analyze {

// One place that allocates objects of one type: the owner's function, whatever its line, since lines move
// when a program is changed. A place that only one of the runs has is all zeros in the other.
struct HeapDiffRow {
  image::Frame owner; // of the newer run where it is there
  std::string type;
  HeapSums old_sums, new_sums;
  bool old_counted = false, new_counted = false; // accesses to objects of the side, which has some
};

// Of the calls of assay_event with one name.
struct EventCounts {
  uint64_t count = 0, weight = 0;
  friend bool operator==(const EventCounts &, const EventCounts &) = default;
};
using EventChange = NamedChange<EventCounts>;

struct HeapDiff {
  std::vector<HeapDiffRow> rows; // those that differ, the largest change of bytes asked for first
  std::vector<AccessChange> globals; // if both runs counted them: the largest change first
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
