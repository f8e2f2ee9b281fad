// `assay heap`: which allocations are hot, cold, short-lived or badly used?
//
// Source: heap-profiler.txt; the ranked questions are row 8 of the tool's design. All byte counts
// are bytes that the program asked for, times are microseconds of the run.
#pragma once

#include "analyze/finding.h"
#include "analyze/frame.h"
#include "analyze/non_heap.h"
#include "analyze/ownership.h"
#include "analyze/place.h"
#include "analyze/suppressions.h"
#include "image/layout.h"
#include "image/symbols.h"
#include "profile/profile.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace analyze {

// Objects are used in blocks of this size: a cache line, and what one counter covers, unless the
// program was built with finer ones.
inline constexpr uint64_t kBlockBytes = 64;

inline constexpr const char *kHeapNotMeasured =
    "the heap was not measured in this profile; build the program with "
    "-fassay=heap,workingset, and run it again";
// The same of this profile, with what would do without a build.
std::string why_no_heap(const profile::Profile &profile);
inline constexpr const char *kMallocOrigin = "malloc"; // calloc, realloc and operator new included

// The objects of one context, of one type, or of one module.
struct HeapSums {
  HeapSums();
  AssayHib all;  // freed and live, joined; the live ones as if freed at the last walk
  AssayHib live; // the live ones alone
  AssayHibHistograms histograms;
  uint64_t peak_bytes =
      0; // of one context; of groups an upper bound: their sum, or all that the program held
  uint64_t at_peak_bytes = 0;
  uint64_t suppressed_count = 0, suppressed_bytes = 0; // of the live ones: known leaks

  // Live objects that nobody asked to be silent about.
  uint64_t leaked_count() const { return live.alloc_count - suppressed_count; }
  uint64_t leaked_bytes() const { return live.size_total - suppressed_bytes; }
  uint64_t accesses() const { return all.reads + all.writes; }
  // Share of the blocks that objects lie in that was touched; 1 for no blocks.
  double used_share() const;
  uint64_t untouched_bytes() const { return all.size_total - all.touched_bytes; }
  // Whether the objects are large enough to be buffers, and used, but by less than half.
  bool over_reserved() const;
  uint64_t untouched_blocks() const { return all.blocks_spanned - all.blocks_touched; }
  double mean_lifetime_us() const;
  void add(const HeapSums &other);
};

struct FreeSite {
  image::CallStack frames;
  size_t owner = 0; // index into frames
  uint64_t count = 0, bytes = 0;

  const image::Frame &owner_frame() const { return frames[owner]; }
};

// How deep a recursion was when objects were allocated.
struct RecursionRow {
  std::string function;      // empty: there was none
  uint64_t objects = 0;      // allocated in it
  uint64_t levels = 0;       // sum over objects: how often the function was on the stack
  uint64_t min = 0, max = 0; // levels
  double mean() const { return objects ? double(levels) / double(objects) : 0; }
  void add(const RecursionRow &other);
};

struct HeapContextRow {
  std::string id;          // the same in the next run of the same source
  image::CallStack frames; // innermost first, inlined ones included
  bool stack_cut = false;
  size_t owner = 0; // index into frames
  // Whether instrumented code makes the allocation: if a library does that was not built with
  // assay-cc (a buffer of stdio, the characters of a std::string), its accesses were not counted,
  // and "untouched" means nothing.
  bool accesses_counted = true;
  // Whether some were: by instrumented code that uses what such a library makes.
  bool has_accesses() const { return accesses_counted || sums.accesses() > 0; }
  std::string type;                   // empty if unknown
  std::string origin = kMallocOrigin; // or "mmap", "pool NAME"
  uint64_t type_size = 0;
  HeapSums sums;
  RecursionRow recursion;
  bool suppressed = false; // what is live of it is a known leak
  // Most objects first. Of a context by call stack, of a site by line, with one of its stacks.
  std::vector<FreeSite> freed_at;
  // Whether another site of the same type is on the owner's line, in another column.
  bool shares_line = false;
  uint64_t contexts = 1; // more for a site: that many contexts of one owner and type

  const image::Frame &owner_frame() const { return frames[owner]; }
  // Whether the type is known and none of the language's own ("char", "unsigned long").
  bool type_is_struct() const;
};

// "Cache::fill at cache.cc:12", and the column where two sites share a line: cache.cc:12:7.
std::string place(const HeapContextRow &row);
std::string brief_place(const HeapContextRow &row);
// The same without the column, with the pool: what the other tools call the site.
std::string site_of(const HeapContextRow &row);

// Calls of assay_event with one name from one call stack.
struct EventRow {
  std::string name;
  image::CallStack frames; // innermost first
  size_t owner = 0;        // index into frames
  uint64_t count = 0, weight = 0;

  const image::Frame &owner_frame() const { return frames[owner]; }
};

struct HeapGroupRow {
  std::string name; // of a type, or path of a module
  uint64_t contexts = 0;
  bool accesses_counted = false; // of one of its contexts at least
  bool has_accesses() const { return accesses_counted || sums.accesses() > 0; }
  HeapSums sums;
  // Of a type whose definition was found: where, and how many of its bytes belong to no member.
  uint64_t size = 0;
  std::string file;
  uint32_t line = 0;
  uint64_t hole_bytes = 0;
  bool has_layout = false;
};

struct HeapResult {
  std::vector<HeapContextRow> contexts; // in order of id
  // Contexts whose owner is one call in one line and whose objects are of one type and origin, as one: what a
  // person would change. Frames and id are those of the context with the most bytes.
  std::vector<HeapContextRow> sites;
  std::vector<HeapGroupRow> types; // by bytes asked for
  std::vector<HeapGroupRow> modules;
  HeapSums totals; // conserved: the sum over contexts, over sites, over types, over modules
  HeapSums whole;  // the same with what the filter took away: shares are shares of it
  bool accesses_counted = true;
  bool reads_apart = true;            // else HeapSums hold all accesses as reads
  uint64_t block_bytes = kBlockBytes; // that one counter covered
  std::vector<Finding> findings;      // by weight

  std::vector<EventRow> events; // by name, most weight first

  // Outside the heap, if the program was built to count there.
  bool globals_counted = false, stacks_counted = false;
  std::vector<GlobalRow> globals; // most accesses first
  std::vector<StackRow> stacks;   // by thread

  // What was looked at.
  std::vector<profile::Process> processes;
  std::vector<std::string> programs; // program_names()
  std::string program_build_id;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> notes;
  bool measured = true; // the heap was, in some process
  uint64_t modules_instrumented = 0, modules_total = 0;
  // Of a program that was not rebuilt (assay run --preload) all accesses are zero, as nobody saw them.
  bool accesses_measured() const { return modules_instrumented > 0; }
  // Where accesses were counted: paths of modules that own allocations and were not built with
  // assay-cc, in order. Counted as the loss uninstrumented_module.
  std::vector<std::string> uninstrumented_allocators;
  // Paths of modules in whose call stacks no function has a name, though their files are there.
  std::vector<std::string> nameless_modules;
  // Share of the bytes asked for by code whose accesses were counted; 1 for no bytes.
  double counted_bytes_share = 1;
  uint64_t peak_live_bytes = 0; // largest of any process
  // Whether it is known who held them; not of a run that was killed: that is written at its end.
  bool peak_is_divided = true;
  uint64_t run_us = 0; // that was measured: to the end, from the start or the reset; the longest
  uint64_t processes_us =
      0; // the same, of all processes added: what sums over them are held against

  // Contexts that the filter took away.
  std::string filter;
  uint64_t filtered_out = 0;
  bool nothing_matches() const {
    return filtered_out && sites.empty() && globals.empty() && events.empty();
  }
  // Contexts with live objects that suppressions match; how many of the patterns matched one.
  uint64_t suppressed_contexts = 0;
  size_t suppressions = 0, suppressions_used = 0;
};

struct HeapQuery {
  // Regular expression over functions, types, origins and modules; empty: everything.
  std::string filter;
  Suppressions suppressions; // of leaks
  Wrappers wrappers;         // beside those that are known by name, or found in the profile
};

// Throws Failure if the filter is not a regular expression.
HeapResult heap(const profile::Profile &profile, image::Symbols &symbols, const HeapQuery &query);

// Whether any module was built to count accesses: with `assay run --preload` none is.
bool counts_accesses(const profile::Profile &profile);
// Sums that need no symbols.
HeapSums heap_totals(const profile::Profile &profile);
// The most bytes that were alive at one time, of any one process.
uint64_t peak_live_bytes(const profile::Profile &profile);

// What an answer rests on: accesses that were counted, or all that there were, since it tells of what was not accessed.
enum class NeededAccesses { kNone, kCounted, kAll };
bool is_known(NeededAccesses needs, const HeapContextRow &row);

// One question, answered by contexts or sites in the order of `rank`; those with rank 0 have no
// part in it.
struct HeapQuestion {
  const char *key;      // for --sort
  const char *question; // heads the table
  NeededAccesses needs; // without them the answer means nothing
  double (*rank)(const HeapSums &);
  // Whether the amounts of a whole run are worth a table that nobody asked for; null: always.
  bool (*worth)(const HeapSums &totals, uint64_t run_us) = nullptr;
};
std::span<const HeapQuestion> heap_questions();

// Throws Failure listing the keys, if it is none.
const HeapQuestion &heap_question(const std::string &key);

// Indices of rows (contexts or sites) that have a part in the question, most first. A question about what was not
// accessed is not asked of rows whose accesses were not all counted.
std::vector<size_t> ranked(const std::vector<HeapContextRow> &rows, const HeapQuestion &question);

// Adds the findings to a result whose rows are complete (heap() calls it).
void find_heap_findings(HeapResult &result);

// What one context has, freed and live.
HeapSums sums_of(const profile::HeapContext &context);

} // namespace analyze
