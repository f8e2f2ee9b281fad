// `assay report`: what all tools say of one program, joined by type, allocation site, phase and function.
//
// The tools measure the same run with the same names: the heap tool knows how many objects a site
// makes and how often they are accessed, the working set when their lines are needed, the objects
// tool how much of a line is used, the fields tool which order of members is better, sampled values
// what the code that reads them computes. A row here has what each of them says of one thing.
#pragma once

#include "analyze/fields.h"
#include "analyze/finding.h"
#include "analyze/heap.h"
#include "analyze/objects.h"
#include "analyze/values.h"
#include "analyze/workingset.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace analyze {

// Of a tool that has an answer, if it found nothing, too.
struct ToolFindings {
  std::string tool;
  std::span<const Finding> findings;
  bool is_filtered = true; // else a filter did not keep what is about other things out of them
  double run_share = 1;    // of the time of all processes, that of the one whose findings they are
};

// What the tools have said of one program; null: that tool has no answer. A join refers to them:
// they must live as long.
struct ToolResults {
  const HeapResult *heap = nullptr;
  const std::vector<WorkingSetResult> *workingsets = nullptr; // of its processes
  const FieldsResult *fields = nullptr;
  const ObjectsResult *objects = nullptr;
  const ValuesResult *values = nullptr;
  std::vector<ToolFindings> findings; // of these and of any other tool
};

// A part of the working set.
struct SetShare {
  uint64_t most_lines = 0; // in one snapshot, of any process
  double mean_lines = 0;   // of all snapshots of the process that has the most
  double time_share = 0;   // of the run, in which it has lines there
  size_t phase = 0;        // index in JoinedResult::phases: where it has the most, lines by time
  uint64_t phase_lines = 0;
};

// Of the words of objects.
struct WordSums {
  uint64_t used = 0, in_lines = 0; // words that were used, words of the lines that were
  uint64_t line_bytes = 0;         // that came with them and were not used
};

// One type, or the objects of one type (or none that is known) from one site.
struct JoinedRow {
  std::string type; // empty if unknown
  std::string
      kind; // heap, global, stack, file, memory; of a type with objects of several kinds, the first of these
  std::string site; // "build at tree.cc:16"; of others the variable; empty in rows of types
  std::optional<HeapSums> heap;
  bool accesses_counted = false; // by the heap tool
  bool has_accesses() const { return heap && (accesses_counted || heap->accesses() > 0); }
  std::optional<SetShare> set;
  std::optional<WordSums> words;
  const StructRow *fields = nullptr;
  bool false_sharing = false;

  // Of the lines that were used, the share that was used: of their bytes where words were recorded,
  // else of the blocks that objects lie in; none if neither was.
  std::optional<double> used_share() const;
  // Which tool says so: "objects", "heap", or "".
  const char *used_by() const;
  // Members to put first, in the order that is advised, if one is worth it.
  std::vector<std::string> first_members() const;
};

// What fills a part of a phase: its lines, and what the row of its site says.
struct PhaseOwner {
  const OwnerName *owner = nullptr;
  uint64_t lines = 0;
  std::optional<size_t> row; // index in JoinedResult::sites
};

struct JoinedPhase {
  size_t number = 0; // from 1, in its process
  const WorkingSetResult *set = nullptr;
  const Phase *phase = nullptr;
  std::string
      fits; // the smallest cache that holds its mean set; "memory": none does; empty: no cache is known
  std::vector<PhaseOwner> owners; // most lines first
  double time_share() const { return set->time_share(*phase); }
  bool whole_run() const { return set->phases.size() == 1; }
};

// What one tool says of the subject of a finding.
struct ToolFact {
  std::string tool, text;
};

// Findings about one thing, as one.
struct JoinedFinding {
  Finding finding; // its weight is the rank: what it could save, as a share of the run
  std::vector<ToolFact> facts;
  struct Part {
    std::string tool;
    Finding finding;         // as the tool says it
    double weight = 0;       // as it counts here
    bool is_filtered = true; // ToolFindings::is_filtered
    std::string type;        // that it is about, as the compiler writes it
  };
  std::vector<Part> parts;                // most weight first
  std::vector<std::string> tools() const; // that say something of it
};

struct ToolState {
  std::string name;
  bool recorded = false;
  bool is_compiled_in = true; // else it measures from outside
};

struct JoinedResult {
  ToolResults from;
  std::vector<ToolState> tools; // of abi/tools.def
  profile::Process process;     // the first
  size_t processes = 0;
  std::vector<std::string> programs; // program_names()
  std::string program_build_id;
  uint64_t line_bytes = 64;
  std::vector<JoinedFinding> findings; // by rank
  std::vector<JoinedRow>
      types; // in the order asked for; what has no type is one row, if the heap was recorded
  std::vector<JoinedRow> sites;    // the same
  std::vector<JoinedPhase> phases; // of the process with the most lines first, then the others
  // Names of several structs, and of how many: it is not known which of them an object is.
  std::map<std::string, size_t> shared_names;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> notes;
  std::string filter;
  size_t filtered_types = 0, filtered_sites = 0; // rows that the filter took away
  bool nothing_matches() const {
    return !filter.empty() && types.empty() && sites.empty() && findings.empty();
  }
};

struct JoinQuery {
  std::string sort;   // a key of joined_orders(); empty: the first one
  std::string filter; // that the results were asked with
  // The join of the same run's results with the filter, if these are asked without: rows and findings that are in
  // it are kept, with the amounts and shares that they have of the whole run.
  const struct JoinedResult *matching = nullptr;
};

// The orders of types and sites.
struct JoinedOrder {
  const char *key;
  const char *question; // "Which types waste the most of their lines?" without "Which types"
  double (*rank)(const JoinedRow &, uint64_t line_bytes);
};
std::span<const JoinedOrder> joined_orders();
const JoinedOrder &joined_order(const std::string &key); // throws Failure listing the keys

// Throws Failure for a query that makes no sense.
JoinedResult join(const ToolResults &results, const JoinQuery &query);

// Adds the findings to a result that is complete but for them, as the query wants them (join() calls it).
void join_findings(JoinedResult &result, const JoinQuery &query);

// "`Node` objects from build at tree.cc:16", "the global `table`".
std::string subject_text(const JoinedRow &row);

// The name of a type as all tools have it: without "struct".
std::string type_key(const std::string &type);

} // namespace analyze
