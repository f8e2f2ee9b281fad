// What changed between the working sets of two runs, by owner and by phase.
#pragma once

#include "analyze/workingset.h"

namespace analyze {

struct WorkingSetSizes {
  double mean_bytes = 0;
  uint64_t largest_bytes = 0, total_bytes = 0;
  friend auto operator<=>(const WorkingSetSizes &, const WorkingSetSizes &) = default;
};

// An owner, whatever its line. One that only one of the runs has is all zeros in the other.
struct OwnerChange {
  struct Side {
    double mean_bytes = 0;   // over the whole run
    uint64_t most_bytes = 0; // in one snapshot
  };
  OwnerName owner; // of the newer run where it is there
  Side old_side, new_side;
};

// Phases in which the threads are mostly in one function, and the same owner has the most lines.
struct PhaseChange {
  struct Side {
    size_t phases = 0;
    double time_share = 0; // of the run
    double mean_bytes = 0; // of their snapshots
  };
  std::string function; // empty if it is not known
  OwnerName owner;      // of the newer run where it is there
  Side old_side, new_side;
};

struct WorkingSetDiff {
  WorkingSetSizes old_sizes, new_sizes;
  std::vector<OwnerChange> owners; // those that differ, the largest change of the mean first
  std::vector<PhaseChange> phases; // the same
  std::vector<std::string> notes;  // sentences: why the two may not compare
  bool same = false;               // nothing differs in sizes and owners
};

WorkingSetDiff diff(const WorkingSetResult &older, const WorkingSetResult &newer);

} // namespace analyze
