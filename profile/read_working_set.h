// The records of a working set, as they come. A record that makes no sense throws Failure.
#pragma once

#include "profile/working_set.h"

#include <optional>
#include <span>
#include <unordered_map>

namespace profile {

class WorkingSetReader {
public:
  void take(const AssayWorkingSetMode &record);
  void take(const AssayWorkingSetSnapshot &record, std::string name);
  void take(const AssayWorkingSetLines &record, std::span<const std::byte> groups);
  void take(const AssayWorkingSetOwners &record, std::span<const std::byte> runs);
  void take(const AssayWorkingSetStack &record);
  void take(const AssayRegion &record, std::string name);

  // What was measured before is left out; whose lines are is kept.
  void reset();

  bool exists() const { return set_.has_value(); }

  // The set, if there is one. Owners and stacks have the numbers of their contexts where a stack's id
  // belongs: `resolve` gives each number its owner.
  std::optional<WorkingSet> finish(const std::function<LineOwner(uint32_t context)> &resolve);

private:
  uint32_t snapshot_index(uint64_t number) const;
  uint32_t owner(uint64_t context);
  std::optional<WorkingSet> set_;
  std::unordered_map<uint32_t, uint32_t> owners_; // context -> index
  uint64_t before_ = 0;                           // snapshots that a reset left out
};

} // namespace profile
