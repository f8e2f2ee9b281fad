// Accesses to the fields of structs, classes and unions, as data.
#pragma once

#include "profile/ids.h"

#include <cstdint>
#include <string>
#include <vector>

namespace profile {

using RecordId = base::Id<struct RecordTag>; // index into Fields::records

// A field, or one of a record that is nested in the record (abi/fields.h).
struct Leaf {
  uint64_t offset_bits = 0, size_bits = 0; // in the record; of an array, of all elements
  uint32_t flags = 0;                      // enum AssayLeafFlags
  uint64_t elements = 1, stride = 0;       // of the arrays around it; stride in bytes
  uint64_t alignment = 1;                  // bytes, a power of two
  std::string name, type;
  friend auto operator<=>(const Leaf &, const Leaf &) = default;
};

// A struct, class or union. Two of one name but with other leaves are two.
struct Record {
  std::string name;
  uint64_t hash = 0; // of name, size and leaves
  uint64_t size = 0; // bytes
  std::string file;
  uint32_t line = 0;
  std::vector<Leaf> leaves;
  friend auto operator<=>(const Record &, const Record &) = default;
};

// Accesses of one function at one line to leaves `first` to `first + more`, each of which is accessed.
struct FieldUse {
  RecordId record; // none: to a field, but which the optimiser has made unknown
  uint32_t first = 0, more = 0;
  ModuleId module;
  std::string function; // linkage name
  uint32_t line = 0;
  uint64_t reads = 0, writes = 0;
  uint64_t copied = 0; // of both, by copies of whole records
  friend auto operator<=>(const FieldUse &, const FieldUse &) = default;
};

// Leaves of one object that were accessed together.
struct FieldSet {
  RecordId record;
  uint32_t kind = 0;            // enum AssayFieldSetKind
  std::vector<uint32_t> leaves; // in order
  uint64_t count = 0;           // in windows weighted by the time that each stands for
  uint64_t adjacent = 0;        // of these, with a neighbour in memory in the same window
  friend auto operator<=>(const FieldSet &, const FieldSet &) = default;
};

// A line that two threads wrote in turn at different bytes: false sharing.
struct FieldSharing {
  RecordId record, other_record;
  uint32_t leaf = 0, other_leaf = 0;
  uint64_t same_object = 0; // of `count`, with both fields in one object
  uint64_t count = 0; // how often the line went from one thread to another, in sampled windows
  friend auto operator<=>(const FieldSharing &, const FieldSharing &) = default;
};

// How objects of a record were met in sampled windows.
struct FieldSampling {
  RecordId record;
  uint64_t rounds = 0; // of windows, in which one was accessed
  uint64_t visits = 0; // objects, once for each window that one was accessed in
  uint64_t stretches =
      0; // executions of code in these windows, once for each object that one accesses
  friend auto operator<=>(const FieldSampling &, const FieldSampling &) = default;
};

struct Fields {
  std::vector<Record> records;
  std::vector<FieldUse> uses; // sums; equal but for their counts there are none
  std::vector<FieldSet> sets; // likewise
  std::vector<FieldSharing> sharing;
  std::vector<FieldSampling> sampling; // one of a record, of those that were sampled
  friend bool operator==(const Fields &, const Fields &) = default;
};

} // namespace profile
