// Which fields of structs are used, together, and which waste their cache line?
#pragma once

#include "analyze/finding.h"
#include "analyze/layout_advice.h"
#include "profile/profile.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace analyze {

// Accesses to a field; a wide access counts for each field whose bytes it covers.
struct FieldRow {
  uint32_t leaf = 0; // of the record
  uint64_t reads = 0, writes = 0, copied = 0;
  // The places with most of them: function and line.
  struct Place {
    std::string function; // demangled
    uint32_t line = 0;
    uint64_t accesses = 0;
  };
  std::vector<Place> places;
  uint64_t accesses() const { return reads + writes; }
};

// Two fields: how often both were accessed, of the times that either was.
struct Affinity {
  uint32_t a = 0, b = 0; // leaves
  double together_share = 0;
};

// Two fields of one line that two threads write in turn.
struct SharingRow {
  std::string record, field, other_record, other_field;
  std::string short_field, other_short_field; // as reports name them
  std::string file;
  uint32_t line = 0;
  bool same_object = false; // else neighbours in memory
  uint64_t count = 0;       // of changes of the writer, in sampled windows
  uint64_t most = 0; // that there can be in the whole run, as the fields are written so often
};

struct StructRow {
  profile::Record record;
  std::vector<FieldRow> fields;         // by leaf
  std::vector<std::string> field_names; // as reports name them, by leaf
  uint64_t reads = 0, writes = 0;
  double used_share = 0; // of its bytes, that were accessed at all
  double disparity =
      0; // 0: all bytes of a line are used alike; towards 1: few hot ones among cold ones
  double score = 0;        // line fetches that a perfect layout would save
  bool is_sampled = false; // sets are those of sampled windows; else of stretches of code
  uint64_t set_count = 0;
  profile::FieldSampling sampling; // none of profiles that have no rounds
  FieldSets sets;
  std::vector<Affinity> affinity; // most together first
  std::vector<Member> members;
  std::vector<Hole> holes;
  LayoutAdvice advice;
  uint64_t accesses() const { return reads + writes; }
  std::string place() const; // "list.c:12": the file without its folders, and the line
  // The members in the order that is advised, without bases and the pointer to virtual functions.
  std::vector<size_t> declared_order() const;
  // These as clang-reorder-fields wants them, bit-fields one by one.
  struct Declarations {
    std::vector<std::string> names;
    std::string why_none; // where the tool cannot reorder them; there are no names then
  };
  Declarations declarations() const;
};

struct FieldsResult {
  profile::Process process;
  std::string program_build_id;
  std::vector<StructRow> structs; // in the order asked for
  std::string filter;
  size_t filtered = 0; // that the filter or the threshold took away
  uint64_t accesses = 0, lost = 0;
  uint64_t of_structs = 0;         // a wide access counts for each field that it covers
  double attributed_share = 1;     // of the accesses that the source makes to fields
  std::vector<SharingRow> sharing; // most changes first
  std::vector<Finding> findings;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> programs; // program_names()
  std::vector<std::string> notes;
};

struct FieldsQuery {
  std::string sort;        // a key of struct_orders(); empty: the first one
  std::string filter;      // regular expression over names and files of structs; empty: all
  double threshold = .001; // structs with a smaller share of all accesses are left out
};

struct StructOrder {
  const char *key;      // for --sort
  const char *question; // heads the table
  bool (*before)(const StructRow &, const StructRow &);
};
std::span<const StructOrder> struct_orders();
const StructOrder &struct_order(const std::string &key); // throws Failure listing the keys

// Were fields measured? Perhaps the code that ran accesses none.
bool has_fields(const profile::Profile &profile);
std::string why_no_fields(const profile::Profile &profile);

// Throws Failure for a filter that is no regular expression.
FieldsResult fields(const profile::Profile &profile, const FieldsQuery &query);

// Adds the findings to a result that is complete but for them (fields() calls it).
void find_fields_findings(FieldsResult &result);

} // namespace analyze
