// The layouts of the records in the program (abi/fields.h), by hash: sizes of objects and offsets of leaves.
#pragma once

#include "runtime/core/tool_callbacks.h"

namespace assay::fields {

struct LeafPlace {
  uint32_t offset, bytes; // of an array, as large as it is; 0 bytes: it has no one place
};

struct RecordLayout {
  uint64_t hash; // 0: free
  uint64_t size;
  uint32_t leaves;
  const LeafPlace *places;
};

// Takes over the records of a module. What a module said stays when it goes.
void add_records(const ModuleSites &sites);
// Null if it is not known.
const RecordLayout *find_record(uint64_t hash);

} // namespace assay::fields
