// `assay objects`: which words of each object are used, and how often?
//
// A cache fetches whole lines; an object of which only some words are used pays for the rest. Rows
// are groups of objects alike: of one allocation site, type and size, freed at one place; or one
// global; or one local variable.
//
// Source: cache-fragmentation.txt, "Heap/global object access patterns".
#pragma once

#include "analyze/finding.h"
#include "analyze/frame.h"
#include "analyze/measured.h"
#include "analyze/ownership.h"
#include "analyze/type_layouts.h"
#include "image/layout.h"
#include "image/symbols.h"
#include "profile/profile.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace analyze {

// Words at one offset of the objects of a group; of large objects several words.
struct ObjectWord {
  uint64_t offset = 0;
  uint64_t hotness = 0;      // sum over the objects: samples that used it, or accesses
  double accessed_share = 0; // of the objects (and of the words, where they are several)
  double again_share =
      0; // -fassay-objects=locality: of the samples that used it, those that followed one that did
  std::string name; // of the members that lie there; empty if unknown
  bool used() const { return accessed_share > 0; }
};

struct ObjectRow {
  std::string id;   // the same in the next run of the same source
  std::string kind; // heap, global, stack
  std::string name; // of a heap object, where it is allocated; of others, the variable
  std::string type; // empty if unknown
  image::CallStack alloc_stack, free_stack; // innermost first; empty where there is none
  size_t owner = 0;                         // index into alloc_stack
  std::string module;                       // path, of a global
  std::string file;                         // where a global is declared
  uint32_t line = 0;
  uint64_t contexts = 1;    // call stacks that are one row
  uint64_t unit_bytes = 4;  // that are told apart
  uint64_t cell_bytes = 4;  // that one of `words` stands for
  uint64_t class_bytes = 0; // sizes of a group are about the same: none is larger
  AssayObjectSums sums = {};
  std::vector<ObjectWord> words;               // all of an object, used or not
  std::vector<ObjectWord> positions;           // in 64 bytes, where cells are larger than units
  const image::StructLayout *layout = nullptr; // of the type, where its definition was found

  bool is_array() const; // of records of the type, as far as its definition is known
  // Share of the words that were used; of the words in lines that were used.
  double used_share() const;
  double line_used_share() const;
  uint64_t unused_line_bytes() const { return (sums.line_units - sums.used_units) * unit_bytes; }
  // What the layout costs: bytes that came into the cache with used ones, for each sample. What rows are ranked by.
  uint64_t score() const { return sums.wasted_byte_samples; }
  uint64_t mean_size() const { return sums.count ? sums.bytes / sums.count : 0; }
};

struct ObjectsResult {
  std::vector<ObjectRow> rows; // highest score first
  AssayObjectSums totals = {}; // conserved: the sum over rows, before the filter
  uint64_t total_score = 0;
  // Share of the bytes that were fetched, a sample at a time, which nobody used.
  double wasted_share = 0;
  std::vector<Finding> findings;
  TypeLayouts layouts;

  profile::Process process; // the first
  size_t processes = 0;
  std::vector<std::string> programs; // program_names()
  std::string program_build_id;
  uint32_t mode = 0;      // a sum of AssayWords
  uint32_t time_unit = 0; // AssayTimeUnit
  uint64_t samples = 0;   // of all processes
  uint64_t interval = 0, last_interval = 0;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> notes;
  ModuleCounts modules;
  std::string filter;
  uint64_t filtered_out = 0;
  bool nothing_matches() const { return filtered_out && rows.empty(); }
};

struct ObjectsQuery {
  std::string
      filter; // regular expression over functions, types, variables and modules; empty: everything
  std::string sort; // an order's key; empty: by score
  Wrappers wrappers;
};

struct ObjectOrder {
  const char *key;
  const char *question;
  double (*rank)(const ObjectRow &); // 0: has no part in it
};
std::span<const ObjectOrder> object_orders();
// Throws Failure listing the keys, if it is none. An empty one is the first.
const ObjectOrder &object_order(const std::string &key);

// Throws Failure if the filter is no regular expression, or the key no order's.
ObjectsResult objects(const profile::Profile &profile, image::Symbols &symbols,
                      const ObjectsQuery &query);

// Whether some process of the profile was measured so.
bool measures_objects(const profile::Profile &profile);

// One sentence: why the profile has no answer.
std::string why_no_objects(const profile::Profile &profile);

// Adds the findings to a result whose rows are complete (objects() calls it).
void find_object_findings(ObjectsResult &result);

// "`node` objects from make at list.c:12", "the global `table`".
std::string object_kind_text(const ObjectRow &row);

} // namespace analyze
