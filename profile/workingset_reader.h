// The records of a working set, as they come. A record that makes no sense throws Failure.
#pragma once

#include "profile/workingset.h"

#include <optional>
#include <span>
#include <unordered_map>

namespace profile {

class WorkingSetReader {
public:
  void on(const AssayWorkingSetMode &record);
  void on(const AssayWorkingSetSnapshot &record, std::string name);
  void on(const AssayWorkingSetLines &record, std::span<const std::byte> groups);
  void on(const AssayWorkingSetOwners &record, std::span<const std::byte> runs);
  void on(const AssayWorkingSetStack &record);
  void on(const AssayRegion &record, std::string name);

  // What was measured before is left out; whose lines are is kept.
  void reset();

  bool exists() const { return exists_; }

  // The set, if there is one. Owners and stacks have the numbers of their contexts where a stack's id
  // belongs: `resolve` gives each number its owner.
  std::optional<WorkingSet> finish(const std::function<OwnerSite(uint32_t context)> &resolve);

private:
  // What waits for its snapshot to be known.
  struct Lines {
    uint64_t tick, ticks;
    TouchedLines lines;
  };
  struct Owned {
    uint64_t tick;
    OwnershipChange lines;
  };
  struct Stack {
    uint64_t tick;
    SnapshotStack stack;
  };
  std::optional<uint32_t> snapshot_of(uint64_t tick) const;
  uint32_t owner(uint64_t context);
  void place_lines();

  bool exists_ = false; // a WorkingSetMode has come
  WorkingSet set_;
  std::vector<uint64_t> first_ticks_; // of each snapshot
  uint64_t next_tick_ = 1;
  std::vector<Lines> lines_;
  std::vector<Owned> owned_;
  std::vector<Stack> stacks_;
  std::unordered_map<uint32_t, uint32_t> owners_; // context -> index
};

} // namespace profile
