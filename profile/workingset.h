// What was measured of one process's working set: which lines were touched in which snapshot, who owned
// them, and where the threads were.
#pragma once

#include "abi/lines.h"
#include "abi/records.h"
#include "profile/ids.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace profile {

struct Snapshot {
  uint64_t begin = 0, end = 0; // in the set's unit
  uint64_t begin_us = 0, end_us = 0;
  std::string name; // of the mark that ended it
  uint64_t length() const { return end - begin; }
  friend auto operator<=>(const Snapshot &, const Snapshot &) = default;
};

// Touched lines of consecutive snapshots, as abi/lines.h has them.
struct TouchedLines {
  uint32_t first = 0, count = 0; // index of the first snapshot; how many
  std::vector<std::byte> groups;
  friend auto operator<=>(const TouchedLines &, const TouchedLines &) = default;
};

// An allocation site that owns lines.
struct OwnerSite {
  StackId stack;
  TypeId type; // none if unknown
  Origin origin;
  friend auto operator<=>(const OwnerSite &, const OwnerSite &) = default;
};

// From this snapshot on, these lines are the owner's.
struct OwnershipChange {
  uint32_t snapshot = 0;
  uint64_t first = 0, count = 0; // line numbers: address / bytes of a line
  uint32_t owner = 0;            // index into WorkingSet::owners
  friend auto operator<=>(const OwnershipChange &, const OwnershipChange &) = default;
};

struct SnapshotStack {
  uint32_t snapshot = 0, thread = 0;
  StackId stack;
  friend auto operator<=>(const SnapshotStack &, const SnapshotStack &) = default;
};

struct Region {
  uint64_t start = 0, end = 0;
  uint32_t kind = 0;  // AssayRegionKind
  uint32_t owner = 0; // number of a stack's thread
  std::string name;
  friend auto operator<=>(const Region &, const Region &) = default;
};

struct WorkingSet {
  uint32_t line_bytes = 64;
  uint32_t unit = 0;     // AssayTimeUnit
  uint64_t interval = 0; // of the first snapshots, in the unit
  std::vector<Snapshot> snapshots;
  std::vector<TouchedLines> lines; // in the order of the file
  std::vector<OwnerSite> owners;
  std::vector<OwnershipChange> owned; // in the order of the file: later ones win
  std::vector<SnapshotStack> stacks;
  std::vector<Region> regions; // in the order of the file: later ones win
  friend auto operator<=>(const WorkingSet &, const WorkingSet &) = default;
};

// Calls f(group, planes) for each group of the batch in ascending order: 64 consecutive lines, and of
// each of its snapshots which of them were touched. Throws Failure for bytes that are no groups.
void each_group(const TouchedLines &lines,
                const std::function<void(uint64_t group, const uint64_t *planes)> &f);

} // namespace profile
