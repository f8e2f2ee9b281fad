// How large is the working set, when, and what is in it?
//
// Of one process: its snapshots one after the other, each with its lines, who owns them and where the
// threads were; phases, which are stretches of snapshots that work on the same things.
#pragma once

#include "analyze/finding.h"
#include "analyze/frame.h"
#include "profile/profile.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace analyze {

// What lines belong to.
struct LinesOwner {
  std::string kind; // heap, global, stack, file, memory
  std::string name; // "Node at build tree.cc:16", a variable, "thread 2", a path
  std::string type; // of objects on the heap, where it is known
  friend auto operator<=>(const LinesOwner &, const LinesOwner &) = default;
};

struct OwnerLines {
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
  std::vector<OwnerLines> owners;    // most lines first; they add up to lines
  std::vector<ThreadStack> stacks;
};

struct Phase {
  size_t first = 0, last = 0;              // indices of snapshots
  uint64_t lines = 0;                      // distinct lines in all of it
  uint64_t mean_lines = 0, most_lines = 0; // of its snapshots
  uint64_t shared_with_previous = 0;       // lines that the phase before used too
  std::vector<OwnerLines> owners;          // of its distinct lines, most first
  std::vector<std::pair<std::string, size_t>>
      functions; // where threads were, in how many snapshots
};

struct CacheFit {
  std::string name; // "L2"
  uint64_t bytes = 0;
  double fits_share = 0;             // of the time
  std::optional<uint64_t> fits_from; // time from which on every snapshot fits
};

struct WorkingSetResult {
  profile::Process process;
  std::string program_build_id;
  uint64_t line_bytes = 64;
  uint32_t unit = 0; // AssayTimeUnit
  std::vector<LinesOwner> owners;
  std::vector<SnapshotRow> snapshots;
  std::vector<Phase> phases;
  uint64_t total_lines = 0; // ever touched
  size_t largest = 0;       // index of the snapshot with the most lines
  std::vector<CacheFit> caches;
  std::vector<Finding> findings;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> notes;
  uint64_t bytes(uint64_t lines) const { return lines * line_bytes; }
};

struct WorkingSetQuery {
  std::vector<std::pair<std::string, uint64_t>>
      caches; // name, bytes: asked for beside the machine's
};

// One result for each process with a working set, in the order of their start.
std::vector<WorkingSetResult> working_sets(const profile::Profile &profile, image::Symbols &symbols,
                                           const WorkingSetQuery &query);

} // namespace analyze
