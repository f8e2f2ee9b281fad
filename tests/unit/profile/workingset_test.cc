// What the reader makes of the records of a working set: groups, joined ticks, resets, damage.

#include "tests/unit/profile/profile_builder.h"

#include "base/fail.h"
#include "profile/container.h"

#include <gtest/gtest.h>

namespace {

using profile::ContainerWriter;
using profile::Profile;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values)
    result.push_back(std::byte(value));
  return result;
}

class Stream {
public:
  Stream() : out_(1, 2) {
    std::string path[] = {"/bin/app", "app"};
    out_.record(ASSAY_RECORD_Program, AssayProgram{1, 0, 1000, 2, 0}, profile::string_tail(path));
    out_.record(ASSAY_RECORD_WorkingSetMode, AssayWorkingSetMode{64, ASSAY_TIME_ACCESSES, 10});
  }
  void snapshot(uint64_t tick, uint64_t ticks) {
    out_.record(ASSAY_RECORD_WorkingSetSnapshot,
                AssayWorkingSetSnapshot{tick, ticks, tick * 10, (tick + ticks) * 10, 0, 1});
  }
  void lines(uint64_t tick, uint64_t ticks, uint64_t group, std::vector<uint64_t> planes) {
    raw_lines(tick, ticks, planes.size(), profile_builder::encoded_groups({{group, planes}}));
  }
  void raw_lines(uint64_t tick, uint64_t ticks, uint64_t count, std::vector<std::byte> groups) {
    out_.record(ASSAY_RECORD_WorkingSetLines, AssayWorkingSetLines{tick, ticks, count}, groups);
  }
  void owners(uint64_t tick, std::vector<std::byte> runs) {
    out_.record(ASSAY_RECORD_WorkingSetOwners, AssayWorkingSetOwners{tick}, runs);
  }
  void context(uint32_t number) {
    uint64_t frame[] = {0x1000 + number};
    out_.record(ASSAY_RECORD_Context, AssayContext{number, 0, 0, 0},
                std::as_bytes(std::span(frame)));
  }
  void reset() { out_.record(ASSAY_RECORD_Reset, AssayReset{5}); }
  Profile read() const { return profile::read_bytes(out_.bytes(), "x"); }

private:
  ContainerWriter out_;
};

TEST(WorkingSet, GroupsAreWhatWasEncoded) {
  std::vector<std::pair<uint64_t, std::vector<uint64_t>>> wanted = {{5, {1, 1, 0}},
                                                                    {6, {7, 8, 9}},
                                                                    {1ULL << 34,
                                                                     {~0ULL, 0, ~0ULL}}},
                                                          found;
  profile::TouchedLines lines = {0, 3, profile_builder::encoded_groups(wanted)};
  profile::each_group(lines, [&](uint64_t group, const uint64_t *planes) {
    found.emplace_back(group, std::vector<uint64_t>(planes, planes + 3));
  });
  EXPECT_EQ(found, wanted);
}

TEST(WorkingSet, RepeatsAreGroupsOfTheirOwn) {
  profile::TouchedLines lines = {0, 1, bytes({10, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0})};
  std::vector<uint64_t> groups;
  profile::each_group(lines, [&](uint64_t group, const uint64_t *planes) {
    groups.push_back(group);
    EXPECT_EQ(planes[0], 3u);
  });
  EXPECT_EQ(groups, (std::vector<uint64_t>{10, 11, 12}));
}

TEST(WorkingSet, HostileGroupsAreRefused) {
  auto refused = [](std::vector<std::byte> groups) {
    profile::TouchedLines lines = {0, 1, std::move(groups)};
    EXPECT_THROW(profile::each_group(lines, [](uint64_t, const uint64_t *) {}), base::Failure);
  };
  refused(bytes({1}));                                                     // cut
  refused(bytes({1, 0, 1, 0, 0}));                                         // a mask is cut
  refused(bytes({255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})); // a number without end
  refused(bytes({1, 255, 255, 255, 255, 15, 0}));                          // repeats without end
  refused(bytes({255, 255, 255, 255, 255, 255, 255, 1, 0, 0}));            // beyond the addresses
}

TEST(WorkingSet, JoinedSnapshotsKeepTheirTicks) {
  Stream stream;
  stream.snapshot(1, 2);
  stream.snapshot(3, 2);
  stream.lines(1, 2, 4, {1, 2}); // of snapshots 0 and 1
  stream.lines(3, 2, 4, {4});    // the other half of snapshot 1
  stream.context(7);
  stream.owners(4, bytes({1, 1, 7})); // tick 4 lies in snapshot 1
  Profile profile = stream.read();
  const auto &set = *profile.processes[0].workingset;
  ASSERT_EQ(set.snapshots.size(), 2u);
  ASSERT_EQ(set.lines.size(), 2u);
  EXPECT_EQ(set.lines[0].first, 0u);
  EXPECT_EQ(set.lines[1].first, 1u);
  ASSERT_EQ(set.owned.size(), 1u);
  EXPECT_EQ(set.owned[0].snapshot, 1u);
  EXPECT_EQ(profile.stack(set.owners[0].stack).frames[0].offset, 0x1007u);
  EXPECT_TRUE(profile.losses.empty() || profile.losses.begin()->first == ASSAY_LOSS_killed);
}

TEST(WorkingSet, AResetLeavesOutWhatWasBeforeButNotWhoseLinesAre) {
  Stream stream;
  stream.context(7);
  stream.snapshot(1, 1);
  stream.lines(1, 1, 4, {1});
  stream.owners(1, bytes({1, 1, 7}));
  stream.reset();
  stream.snapshot(2, 1);
  stream.lines(2, 1, 4, {2});
  Profile profile = stream.read();
  const auto &set = *profile.processes[0].workingset;
  ASSERT_EQ(set.snapshots.size(), 1u);
  EXPECT_EQ(set.snapshots[0].begin, 20u);
  ASSERT_EQ(set.lines.size(), 1u);
  EXPECT_EQ(set.lines[0].first, 0u);
  ASSERT_EQ(set.owned.size(), 1u);
  EXPECT_EQ(set.owned[0].snapshot, 0u);
}

TEST(WorkingSet, WhatMakesNoSenseIsALoss) {
  Stream stream;
  stream.snapshot(1, 1);
  stream.snapshot(3, 1);                 // a gap
  stream.snapshot(2, 0);                 // of no ticks
  stream.lines(1, 1, 4, {});             // of no snapshots
  stream.raw_lines(1, 1, 1, bytes({1})); // cut
  stream.owners(1, bytes({1, 1, 0}));    // of no context
  stream.owners(1, bytes({1}));          // cut
  stream.lines(9, 1, 4, {1});            // of a snapshot that never came: left out, no loss
  Profile profile = stream.read();
  EXPECT_EQ(profile.losses[ASSAY_LOSS_bad_record], 6u);
  EXPECT_EQ(profile.processes[0].workingset->snapshots.size(), 1u);
  EXPECT_TRUE(profile.processes[0].workingset->lines.empty());
}

} // namespace
