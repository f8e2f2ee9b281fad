// The touched lines of a process, snapshot after snapshot, each with its owner at that moment.
#pragma once

#include "analyze/line_owners.h"

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace analyze {

// 64 consecutive lines in one snapshot, some of which were touched.
struct TouchedGroup {
  size_t snapshot = 0;
  uint64_t group = 0;                             // the first line is group * ASSAY_GROUP_LINES
  uint64_t lines = 0;                             // a bit for each
  std::array<uint32_t, ASSAY_GROUP_LINES> owners; // of the touched ones: index of a name
};

// Calls f(number) for each line of a group that is touched.
template <typename F> void each_line(uint64_t lines, F f) {
  for (; lines; lines &= lines - 1)
    f(static_cast<unsigned>(std::countr_zero(lines)));
}

class LineReplay {
public:
  // `fold` recorded lines make one; a power of two. Such a line is touched if one of them is, and
  // belongs to whom most of its touched ones belong to, of several the first.
  LineReplay(const profile::WorkingSet &set, LineOwners &owners, uint64_t fold);

  // Calls f for every group with a touched line, in the order of snapshots, then of groups.
  void run(const std::function<void(const TouchedGroup &)> &f);

  // Pages of 4 KiB with a touched line, of each snapshot that was replayed.
  const std::vector<uint64_t> &pages() const { return pages_; }

private:
  struct Batch {
    uint32_t first, end; // snapshots
    std::vector<std::pair<uint64_t, std::array<uint64_t, 8>>> groups;
  };
  using OwnersOfGroup = std::array<uint32_t, ASSAY_GROUP_LINES>;

  void open_batches(uint32_t snapshot);
  void apply_owners(uint32_t snapshot);
  OwnersOfGroup &owners_of(uint64_t group);
  uint32_t owner(uint64_t group, unsigned line, OwnersOfGroup &known);

  const profile::WorkingSet &set_;
  LineOwners &owners_;
  uint64_t fold_;
  std::vector<Batch> open_;
  size_t next_lines_ = 0, next_owned_ = 0;
  std::unordered_map<uint64_t, OwnersOfGroup> owners_of_; // recorded group -> indices of names
  std::vector<uint64_t> pages_;
};

} // namespace analyze
