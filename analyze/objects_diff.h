// What changed in the use of objects' words between two runs.
#pragma once

#include "analyze/objects.h"

namespace analyze {

// Objects of one place and type, whatever its line; one that only one of the runs has is all zeros in the other.
struct ObjectChange {
  std::string kind, name, type; // of the newer run where it is there
  AssayObjectSums old_sums = {}, new_sums = {};
  uint64_t unit_bytes = 4;
  // Words that only one side uses: "key", or "+8" where no member is known.
  std::vector<std::string> no_longer_used, newly_used;
};

struct ObjectsDiff {
  std::vector<ObjectChange>
      rows; // those that differ, the largest change of unused bytes in used lines first
  AssayObjectSums old_totals = {}, new_totals = {};
  double old_wasted_share = 0, new_wasted_share = 0;
  std::vector<std::string> notes; // sentences: why the two may not compare
  bool same = false; // nothing differs in objects, words and lines; hotness is another in each run
};

ObjectsDiff diff(const ObjectsResult &older, const ObjectsResult &newer);

} // namespace analyze
