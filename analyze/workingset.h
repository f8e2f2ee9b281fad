// How large is the working set, when, and what is in it?
//
// Of one process: its snapshots one after the other, each with its lines, who owns them and where the
// threads were; phases, which are stretches of snapshots that work on the same things.
#pragma once

#include "analyze/finding.h"
#include "analyze/frame.h"
#include "analyze/ownership.h"
#include "analyze/reuse.h"
#include "analyze/thread_work.h"
#include "profile/profile.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace analyze {

// What lines belong to.
struct OwnerName {
  std::string kind; // heap, global, stack, file, memory
  std::string name; // "Node at build tree.cc:16", a variable, "thread 2", a path
  std::string type; // of objects on the heap, where it is known
  friend auto operator<=>(const OwnerName &, const OwnerName &) = default;
};

// "Node from build at tree.cc:16", "global table": for a table.
std::string full_name(const OwnerName &owner);

// A time on a clock (AssayTimeUnit), as people read it.
std::string clock_text(uint32_t unit, uint64_t value);

struct OwnerCount {
  uint32_t owner = 0; // index into WorkingSetResult::owners
  uint64_t lines = 0;
};

struct ThreadStack {
  uint32_t thread = 0;
  CallStack frames;
  size_t owner = 0; // the frame that a person would look at
};

struct SnapshotRow {
  profile::Snapshot when;
  uint64_t lines = 0;
  uint64_t pages = 0;                // of 4 KiB, with a line that was touched
  uint64_t shared_with_previous = 0; // lines
  uint64_t new_lines = 0;            // touched for the first time in the run
  std::vector<OwnerCount> owners;    // most lines first; they add up to lines
  std::vector<ThreadStack> stacks;
  std::vector<uint32_t> idle_threads; // that touched nothing new, before and after they did
  // What it counts for in means; one without a length counts as the shortest.
  double weight() const { return double(std::max<uint64_t>(when.length(), 1)); }
};

struct Phase {
  size_t first = 0, last = 0; // indices of snapshots
  std::vector<size_t>
      left_out;       // those of them that are unlike it, or in which nothing was touched; sorted
  uint64_t lines = 0; // distinct lines in all of it
  uint64_t mean_lines = 0;           // of its snapshots, but for those that are left out
  uint64_t most_lines = 0;           // of its snapshots
  uint64_t shared_with_previous = 0; // lines that the phase before used too
  std::vector<OwnerCount> owners;    // mean lines, as mean_lines; most first
  std::vector<std::pair<std::string, size_t>>
      functions; // where threads were, in how many snapshots
  size_t own_snapshots() const { return last - first + 1 - left_out.size(); }
  bool is_left_out(size_t snapshot) const {
    return std::binary_search(left_out.begin(), left_out.end(), snapshot);
  }
};

// What belongs to one owner over the whole run.
struct OwnerRow {
  uint32_t owner = 0;      // index into WorkingSetResult::owners
  double mean_lines = 0;   // of all snapshots, weighted by their lengths
  uint64_t most_lines = 0; // in one snapshot
  uint64_t new_lines = 0;  // touched for the first time in the run while they were its
  double time_share = 0;   // of the run, in which it has lines in the working set
};

struct CacheFit {
  std::string name; // "L2"
  uint64_t bytes = 0;
  // A set that is hardly larger (its own size, as reports write it) fits.
  bool holds(uint64_t set_bytes) const { return double(set_bytes) <= 1.005 * double(bytes); }
  double fits_share = 0;             // of the time
  std::optional<uint64_t> fits_from; // time from which on every snapshot fits
};

// A cache of a size, and how many lines it would have to bring in.
struct MissPoint {
  std::string name; // "L2"; empty for the sizes between
  uint64_t bytes = 0;
  Misses misses;
  // A snapshot has more lines than the cache: those that it touches again and again may miss more often.
  bool may_be_more = false;
};

struct WorkingSetResult {
  profile::Process process;
  std::string program_build_id;
  uint64_t line_bytes = 64; // as asked for
  uint32_t unit = 0;        // AssayTimeUnit
  std::vector<OwnerName> owners;
  std::vector<SnapshotRow> snapshots;
  std::vector<Phase> phases;
  std::vector<ThreadRow> threads;
  uint64_t total_lines = 0; // ever touched
  double mean_lines = 0;    // of the snapshots, weighted by their lengths
  size_t largest = 0;       // index of the snapshot with the most lines
  std::vector<OwnerRow>
      owner_rows; // in the order asked for; without those that the filter took away
  std::string filter;
  size_t filtered_owners = 0; // that it took away
  double filtered_mean_lines = 0;
  bool nothing_matches() const { return filtered_owners && owner_rows.empty(); }
  std::vector<PeriodRow> periods;
  std::vector<MissPoint> miss_curve; // by size
  std::vector<CacheFit> caches;
  std::vector<Finding> findings;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> notes;
  uint64_t bytes(uint64_t lines) const { return lines * line_bytes; }
  // From the first snapshot to the last, in the unit.
  uint64_t length() const { return snapshots.back().when.end - snapshots.front().when.begin; }
  uint64_t length(const Phase &phase) const {
    return snapshots[phase.last].when.end - snapshots[phase.first].when.begin;
  }
  double time_share(const Phase &phase) const {
    return double(length(phase)) / double(std::max<uint64_t>(length(), 1));
  }
  // Of all snapshots, by which means over the run are divided.
  double weight() const {
    double sum = 0;
    for (const SnapshotRow &row : snapshots)
      sum += row.weight();
    return sum;
  }
  // Of the run, without the snapshots in which nothing was touched.
  double working_share(const Phase &phase) const {
    double worked = 0;
    for (size_t i = phase.first; i <= phase.last; i++)
      worked += snapshots[i].lines ? snapshots[i].weight() : 0;
    return worked / weight();
  }
};

struct WorkingSetQuery {
  std::vector<std::pair<std::string, uint64_t>>
      caches;              // name, bytes: asked for beside the machine's
  uint64_t line_bytes = 0; // a power of two times what was recorded; 0: as recorded
  std::string sort;        // a key of owner_orders(); empty: the first one
  std::string filter;      // regular expression over names, types and kinds of owners; empty: all
  Wrappers wrappers;       // around allocation functions, beside those that are known by name
};

// The orders that owners can be listed in.
struct OwnerOrder {
  const char *key;      // for --sort
  const char *question; // heads the table
  bool (*before)(const OwnerRow &, const OwnerRow &, const std::vector<OwnerName> &owners);
};
std::span<const OwnerOrder> owner_orders();

// The first one for an empty key. Throws Failure listing the keys, if it is none.
const OwnerOrder &owner_order(const std::string &key);

// Adds the findings to a result that is complete but for them (workingsets() calls it).
void find_workingset_findings(WorkingSetResult &result);

// One result for each process with a working set, in the order of their start. Throws Failure for a query
// that makes no sense.
std::vector<WorkingSetResult> workingsets(const profile::Profile &profile, image::Symbols &symbols,
                                          const WorkingSetQuery &query);
// Where there is none: why, and what to do.
std::string why_no_working_sets(const profile::Profile &profile);

} // namespace analyze
