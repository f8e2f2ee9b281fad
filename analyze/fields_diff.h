// What changed between the accesses to fields of two runs.
#pragma once

#include "analyze/fields.h"

namespace analyze {

// A struct of one name in both runs; one that only one of them has is zeros in the other.
struct StructChange {
  // A field whose accesses differ; zeros where it is not there.
  struct Field {
    std::string name;
    uint64_t old_reads = 0, old_writes = 0, new_reads = 0, new_writes = 0;
    bool same() const { return old_reads == new_reads && old_writes == new_writes; }
    uint64_t change() const;
  };
  struct Side {
    uint64_t accesses = 0, size = 0;
    double lines = 0; // that an access brings in
    friend auto operator<=>(const Side &, const Side &) = default;
  };
  std::string name;
  Side old_side, new_side;
  bool members_moved = false; // both runs have it, with other members or in another order
  std::vector<Field> fields;  // the largest change of accesses first
};

struct FieldsDiff {
  std::vector<StructChange> rows; // those that differ, the largest change of accesses first
  bool same = false;
};

FieldsDiff diff(const FieldsResult &older, const FieldsResult &newer);

} // namespace analyze
