// What two working sets differ in.

#include "analyze/workingset_diff.h"

#include <gtest/gtest.h>

namespace {

using analyze::WorkingSetResult;

// One phase of snapshots of a million accesses, each with these lines of one owner.
WorkingSetResult result_of(const std::string &name, uint64_t lines, size_t snapshots) {
  WorkingSetResult result;
  result.unit = ASSAY_TIME_ACCESSES;
  result.owners = {{"heap", name, "Node"}};
  for (uint64_t i = 0; i < snapshots; i++) {
    analyze::SnapshotRow row;
    row.when = {i * 1000000, (i + 1) * 1000000, 0, 0, ""};
    row.lines = lines;
    row.owners = {{0, lines}};
    result.snapshots.push_back(row);
  }
  result.mean_lines = double(lines);
  result.total_lines = lines;
  result.owner_rows = {{0, double(lines), lines, lines, 1}};
  analyze::Phase phase;
  phase.last = snapshots - 1;
  phase.mean_lines = phase.most_lines = phase.lines = lines;
  phase.owners = {{0, lines}};
  phase.functions = {{"work", snapshots}};
  result.phases = {phase};
  return result;
}

TEST(WorkingSetDiff, TheSameRunDoesNotDiffer) {
  auto diff =
      analyze::diff(result_of("build at a.c:3", 100, 10), result_of("build at a.c:3", 100, 10));
  EXPECT_TRUE(diff.same);
  EXPECT_TRUE(diff.owners.empty());
  EXPECT_TRUE(diff.phases.empty());
  EXPECT_TRUE(diff.notes.empty());
}

TEST(WorkingSetDiff, OwnersAreTheSameWhateverTheirLine) {
  for (const char *origin : {"", " (pool nodes)"}) {
    auto diff = analyze::diff(result_of(std::string("build at a.c:3") + origin, 100, 10),
                              result_of(std::string("build at a.c:77") + origin, 150, 10));
    EXPECT_FALSE(diff.same);
    ASSERT_EQ(diff.owners.size(), 1u);
    EXPECT_EQ(diff.owners[0].owner.name, std::string("build at a.c:77") + origin);
    EXPECT_DOUBLE_EQ(diff.owners[0].old_side.mean_bytes, 6400);
    EXPECT_DOUBLE_EQ(diff.owners[0].new_side.mean_bytes, 9600);
    ASSERT_EQ(diff.phases.size(), 1u);
    EXPECT_EQ(diff.phases[0].function, "work");
    EXPECT_DOUBLE_EQ(diff.phases[0].old_side.time_share, 1);
    EXPECT_DOUBLE_EQ(diff.phases[0].new_side.mean_bytes, 9600);
  }
}

TEST(WorkingSetDiff, WhatOneRunLacksIsZero) {
  auto diff =
      analyze::diff(result_of("build at a.c:3", 100, 10), result_of("parse at a.c:3", 100, 10));
  EXPECT_FALSE(diff.same);
  ASSERT_EQ(diff.owners.size(), 2u);
  EXPECT_EQ(diff.owners[0].old_side.most_bytes + diff.owners[1].old_side.most_bytes, 6400u);
  EXPECT_EQ(diff.owners[0].old_side.most_bytes, diff.owners[1].new_side.most_bytes);
}

TEST(WorkingSetDiff, RunsThatDoNotCompareAreSaidToBe) {
  WorkingSetResult old = result_of("build at a.c:3", 100, 10), now = old;
  for (analyze::SnapshotRow &row : now.snapshots)
    row.when = {row.when.begin * 2, row.when.end * 2, 0, 0, ""};
  EXPECT_EQ(analyze::diff(old, now).notes,
            std::vector<std::string>{"a snapshot lasts 1.00 M accesses in the old run and 2.00 M "
                                     "accesses in the new one; longer ones have more lines"});
  now.unit = ASSAY_TIME_WALL;
  EXPECT_EQ(analyze::diff(old, now).notes.size(), 1u);
  EXPECT_NE(analyze::diff(old, now).notes[0].find("different clocks"), std::string::npos);
}

} // namespace
