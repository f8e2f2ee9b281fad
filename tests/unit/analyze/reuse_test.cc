// Periods and misses against what counting and an LRU cache say, line by line.

#include "analyze/reuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace {

using analyze::Reuse;
using Lines = std::vector<uint64_t>; // touched in one snapshot, in the order of their touches

Reuse reuse_of(const std::vector<Lines> &snapshots) {
  Reuse reuse(std::vector<uint64_t>(snapshots.size(), 10));
  std::map<uint64_t, size_t> last;
  for (size_t snapshot = 0; snapshot < snapshots.size(); snapshot++) {
    for (uint64_t line : snapshots[snapshot]) {
      auto known = last.find(line);
      reuse.touch(known == last.end() ? Reuse::kNever : known->second);
      last[line] = snapshot;
    }
    reuse.end_snapshot();
  }
  return reuse;
}

uint64_t misses_of_lru(const std::vector<Lines> &snapshots, size_t capacity) {
  std::list<uint64_t> cache; // most recent first
  uint64_t misses = 0;
  for (const Lines &lines : snapshots)
    for (uint64_t line : lines) {
      auto found = std::find(cache.begin(), cache.end(), line);
      if (found != cache.end())
        cache.erase(found);
      else
        misses++;
      cache.push_front(line);
      if (cache.size() > capacity)
        cache.pop_back();
    }
  return misses;
}

// Snapshots of phases: each takes its lines from a window that moves now and then.
std::vector<Lines> random_snapshots(std::mt19937_64 &random) {
  std::vector<Lines> snapshots(1 + random() % 40);
  uint64_t base = 0, width = 50;
  for (Lines &lines : snapshots) {
    if (random() % 8 == 0) {
      base = random() % 200;
      width = 1 + random() % 100;
    }
    std::set<uint64_t> chosen;
    for (uint64_t i = random() % 60; i; i--)
      chosen.insert(base + random() % width);
    lines.assign(chosen.begin(), chosen.end());
    std::shuffle(lines.begin(), lines.end(), random);
  }
  return snapshots;
}

TEST(Reuse, AnLruCacheMissesBetweenTheBounds) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; round++) {
    auto snapshots = random_snapshots(random);
    Reuse reuse = reuse_of(snapshots);
    for (size_t capacity : {1, 2, 5, 10, 30, 60, 100, 200, 1000}) {
      analyze::Misses misses = reuse.misses(capacity);
      uint64_t exact = misses_of_lru(snapshots, capacity);
      EXPECT_LE(misses.least, exact) << capacity;
      EXPECT_GE(misses.most, exact) << capacity;
    }
  }
}

TEST(Reuse, LinesInTheSameOrderInEverySnapshotMissTheMost) {
  std::vector<Lines> snapshots;
  for (int snapshot = 0; snapshot < 30; snapshot++) {
    snapshots.emplace_back();
    uint64_t lines = snapshot < 10 ? 100 : snapshot < 20 ? 400 : 50; // other ones in each phase
    for (uint64_t line = 0; line < lines; line++)
      snapshots.back().push_back(lines * 1000 + line);
  }
  Reuse reuse = reuse_of(snapshots);
  for (size_t capacity : {10, 49, 50, 99, 100, 399, 400, 500})
    EXPECT_EQ(reuse.misses(capacity).most, misses_of_lru(snapshots, capacity)) << capacity;
  EXPECT_EQ(reuse.misses(400).least, 550u); // only what is new
  EXPECT_EQ(reuse.misses(400).most, 550u);
}

TEST(Reuse, AStreamMissesInEveryCache) {
  std::vector<Lines> snapshots;
  for (uint64_t line = 0; line < 1000; line++) {
    if (line % 100 == 0)
      snapshots.emplace_back();
    snapshots.back().push_back(line);
  }
  for (size_t capacity : {1, 100, 10000}) {
    EXPECT_EQ(reuse_of(snapshots).misses(capacity).least, 1000u);
    EXPECT_EQ(reuse_of(snapshots).misses(capacity).most, 1000u);
  }
}

TEST(Reuse, PeriodsHaveTheLinesOfAllTheirSnapshots) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; round++) {
    auto snapshots = random_snapshots(random);
    auto periods = reuse_of(snapshots).periods();
    EXPECT_EQ(periods.back().snapshots, snapshots.size());
    size_t expected = 1;
    double before = 0;
    for (const analyze::PeriodRow &row : periods) {
      EXPECT_EQ(row.snapshots, std::min(expected, snapshots.size()));
      expected *= 2;
      uint64_t most = 0, sum = 0;
      for (size_t first = 0; first < snapshots.size(); first += row.snapshots) {
        std::set<uint64_t> lines;
        size_t end = std::min(first + row.snapshots, snapshots.size());
        for (size_t i = first; i < end; i++)
          lines.insert(snapshots[i].begin(), snapshots[i].end());
        most = std::max<uint64_t>(most, lines.size());
        sum += lines.size() * (end - first);
      }
      EXPECT_EQ(row.most_lines, most);
      EXPECT_DOUBLE_EQ(row.mean_lines, double(sum) / double(snapshots.size()));
      EXPECT_NEAR(row.length, 10.0 * double(row.snapshots), 1e-9);
      EXPECT_GE(row.mean_lines, before - 1e-9);
      before = row.mean_lines;
    }
  }
}

} // namespace
