// The touched lines of a process, snapshot after snapshot, each with its owner at that moment.
#pragma once

#include "analyze/owner_finder.h"

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace analyze {

using NumberOfLine = std::array<uint32_t, ASSAY_GROUP_LINES>;

// 64 consecutive lines in one snapshot, some of which were touched.
struct TouchedGroup {
  size_t snapshot = 0;
  uint64_t group = 0;    // the first line is group * ASSAY_GROUP_LINES
  uint64_t lines = 0;    // a bit for each
  NumberOfLine owners{}; // of the touched ones: index of a name
};

// Calls f(number) for each line of a group that is touched.
template <typename F> void each_line(uint64_t lines, F f) {
  for (; lines; lines &= lines - 1)
    f(static_cast<unsigned>(std::countr_zero(lines)));
}

// Calls f(number, lines) for each number that touched lines have, with those that have it. Neighbours mostly
// have the same, so this is far cheaper than line by line.
template <typename F> void each_number(uint64_t lines, const NumberOfLine &numbers, F f) {
  while (lines) {
    uint32_t number = numbers[static_cast<size_t>(std::countr_zero(lines))];
    uint64_t same = 0;
    for (size_t line = 0; line < ASSAY_GROUP_LINES; line++)
      same |= uint64_t{numbers[line] == number} << line;
    f(number, same & lines);
    lines &= ~same;
  }
}

class LineReplay {
public:
  // `fold` recorded lines make one; a power of two. Such a line is touched if one of them is, and
  // belongs to whom most of its touched ones belong to, of several the first.
  LineReplay(const profile::WorkingSet &set, OwnerFinder &owners, uint64_t fold);

  // Calls f for every group with a touched line, in the order of snapshots, then of groups.
  void run(const std::function<void(const TouchedGroup &)> &f);

  // Pages of 4 KiB with a touched line, of each snapshot that was replayed.
  const std::vector<uint64_t> &pages() const { return pages_; }

private:
  struct Batch {
    uint32_t first, end; // snapshots
    std::vector<std::pair<uint64_t, std::array<uint64_t, 8>>> groups;
  };
  struct Owners {
    NumberOfLine names{};
    uint64_t known = 0; // lines
  };

  void open_batches(uint32_t snapshot);
  void gather_recorded(uint32_t snapshot);
  void apply_owners(uint32_t snapshot);
  const NumberOfLine &owners_of(uint64_t group, uint64_t lines);

  const profile::WorkingSet &set_;
  OwnerFinder &owners_;
  uint64_t fold_;
  std::vector<Batch> open_;
  std::vector<std::pair<uint64_t, uint64_t>> recorded_; // groups of the snapshot, and their lines
  size_t next_lines_ = 0, next_owned_ = 0;
  std::unordered_map<uint64_t, Owners> owners_of_; // by recorded group
  std::vector<uint64_t> pages_;
};

} // namespace analyze
