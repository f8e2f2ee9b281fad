// What changed between the accesses to fields of two runs.
#pragma once

#include "analyze/fields.h"
#include "analyze/named_change.h"

namespace analyze {

// A struct of one name in both runs; one that only one of them has is zeros in the other.
struct StructChange {
  struct Side {
    uint64_t accesses = 0, size = 0;
    double lines = 0; // that an access brings in
    friend auto operator<=>(const Side &, const Side &) = default;
  };
  std::string name;
  Side old_side, new_side;
  bool members_moved = false;       // both runs have it, with other members or in another order
  std::vector<AccessChange> fields; // whose accesses differ, the largest change first
};

struct FieldsDiff {
  std::vector<StructChange> rows; // those that differ, the largest change of accesses first
  bool same = false;
};

FieldsDiff diff(const FieldsResult &older, const FieldsResult &newer);

} // namespace analyze
