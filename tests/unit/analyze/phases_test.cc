// Stretches of snapshots, from how many lines each owner has.

#include "analyze/phases.h"

#include <gtest/gtest.h>

namespace {

using analyze::SnapshotRow;

// Snapshots with these lines of owner 0, 1, …
std::vector<SnapshotRow> rows(std::vector<std::vector<uint64_t>> lines) {
  std::vector<SnapshotRow> result;
  for (const auto &each : lines) {
    SnapshotRow row;
    for (uint32_t owner = 0; owner < each.size(); owner++) {
      row.owners.push_back({owner, each[owner]});
      row.lines += each[owner];
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::vector<std::pair<size_t, size_t>> bounds(const std::vector<SnapshotRow> &snapshots) {
  std::vector<std::pair<size_t, size_t>> result;
  for (const analyze::Phase &phase : analyze::find_phases(snapshots))
    result.emplace_back(phase.first, phase.last);
  return result;
}

using Bounds = std::vector<std::pair<size_t, size_t>>;

TEST(Phases, NothingHasNone) {
  EXPECT_EQ(bounds({}), Bounds());
}

TEST(Phases, ASteadyRunIsOne) {
  EXPECT_EQ(bounds(rows({{1000}, {1100}, {900}, {1000}})), (Bounds{{0, 3}}));
}

TEST(Phases, OtherOwnersAreAnother) {
  EXPECT_EQ(bounds(rows({{1000, 0}, {1000, 0}, {0, 1000}, {0, 1000}})), (Bounds{{0, 1}, {2, 3}}));
}

TEST(Phases, MoreOfTheSameIsAnother) {
  EXPECT_EQ(bounds(rows({{1000}, {1000}, {5000}, {5000}, {1000}, {1000}})),
            (Bounds{{0, 1}, {2, 3}, {4, 5}}));
}

TEST(Phases, ASnapshotBetweenTwoGoesToTheOneItIsMoreLike) {
  EXPECT_EQ(bounds(rows({{1000, 0}, {1000, 0}, {300, 900}, {0, 1000}, {0, 1000}})),
            (Bounds{{0, 1}, {2, 4}}));
}

TEST(Phases, AnOutlierDoesNotSplitAPhase) {
  EXPECT_EQ(bounds(rows({{1000}, {1000}, {9000}, {1000}, {1000}})), (Bounds{{0, 4}}));
}

using LeftOut = std::vector<std::vector<size_t>>;
LeftOut left_out(const std::vector<SnapshotRow> &snapshots) {
  LeftOut result;
  for (const analyze::Phase &phase : analyze::find_phases(snapshots))
    result.push_back(phase.left_out);
  return result;
}

TEST(Phases, WhatWentToAPhaseAloneIsLeftOut) {
  EXPECT_EQ(left_out(rows({{1000}, {1000}, {9000}, {1000}, {1000}})), (LeftOut{{2}}));
  EXPECT_EQ(left_out(rows({{0}, {60000}, {400}, {400}, {400}, {400}})), (LeftOut{{0, 1}}));
  EXPECT_EQ(left_out(rows({{1000, 0}, {1000, 0}, {300, 300}, {0, 1000}, {0, 1000}})),
            (LeftOut{{2}, {}}));
  EXPECT_EQ(left_out(rows({{1000}, {1100}, {900}, {1000}})), (LeftOut{{}}));
}

TEST(Phases, WhereNothingWasTouchedIsLeftOut) {
  EXPECT_EQ(bounds(rows({{0}, {1000}, {0}, {0}, {1000}, {0}})), (Bounds{{0, 5}}));
  EXPECT_EQ(left_out(rows({{0}, {1000}, {0}, {0}, {1000}, {0}})), (LeftOut{{0, 2, 3, 5}}));
  EXPECT_EQ(bounds(rows({{0, 0}, {1000, 0}, {0, 0}, {1000, 0}, {0, 0}, {0, 900}, {0, 900}})),
            (Bounds{{0, 4}, {5, 6}}));
  EXPECT_EQ(left_out(rows({{0}, {0}})), (LeftOut{{0, 1}}));
}

TEST(Phases, HandfulsOfLinesMakeNoDifference) {
  EXPECT_EQ(bounds(rows({{2}, {9}, {1}, {0}, {5}})), (Bounds{{0, 4}}));
}

} // namespace
