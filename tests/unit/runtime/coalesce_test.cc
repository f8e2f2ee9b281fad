// However often snapshots are coalesced, and however their lines lie in batches: each snapshot has
// the lines of those that it was made of, the last owners of each line, and its begin and end.
#include "profile/profile.h"
#include "runtime/workingset/coalesce.h"
#include "runtime/workingset/records.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace {

using assay::ProfileFile;
namespace workingset = assay::workingset;

using Lines = std::set<uint64_t>;

// What the program did in each of the finest snapshots.
struct Tick {
  Lines lines;
  std::map<uint64_t, uint32_t> owners; // by line
};

constexpr uint64_t kTickUs = 10;

class Coalescing : public testing::TestWithParam<unsigned> {
protected:
  void SetUp() override {
    ASSERT_TRUE(file_.open(folder_.in("profiles").c_str(), "run", "program"));
    file_.append(ASSAY_RECORD_WorkingSetMode, AssayWorkingSetMode{64, ASSAY_TIME_WALL, kTickUs});
  }
  void TearDown() override { workingset::set_coalesced_ticks(1); }

  uint64_t below(uint64_t limit) { return random_() % limit; }

  void do_something(Tick &tick) {
    for (uint64_t runs = below(5); runs > 0; runs--) {
      const uint64_t first = below(3) ? below(1000) : (uint64_t(1) << 40) + below(1 << 20);
      const uint64_t count = 1 + below(200);
      const auto owner = static_cast<uint32_t>(1 + below(5));
      const bool named = below(2);
      for (uint64_t line = first; line < first + count; line++) {
        tick.lines.insert(line);
        if (named)
          tick.owners[line] = owner;
      }
    }
  }

  void write_snapshot(uint64_t tick) {
    const AssayWorkingSetSnapshot snapshot = {
        tick, 1, (tick - 1) * kTickUs, tick * kTickUs, (tick - 1) * kTickUs, tick * kTickUs};
    file_.append(ASSAY_RECORD_WorkingSetSnapshot, snapshot);
    static workingset::OwnersRecord owners; // as large as in the runtime
    owners.begin(file_, tick);
    for (auto [line, owner] : ticks_[tick - 1].owners)
      owners.add(line, 1, assay::ContextId{owner});
    owners.end();
  }

  // One batch: the lines of `count` snapshots from a tick on.
  void write_lines(uint64_t first, uint64_t count) {
    std::map<uint64_t, std::array<uint64_t, workingset::kMaxPlanes>> groups;
    for (uint64_t i = 0; i < count; i++)
      for (uint64_t line : ticks_[first - 1 + i].lines)
        groups[line / 64][i] |= uint64_t(1) << line % 64;
    static workingset::LinesRecord record;
    record.begin(file_, first, 1, static_cast<uint32_t>(count));
    for (auto &[group, planes] : groups)
      record.add(group, planes.data());
    record.end();
  }

  void write_ticks(uint64_t count) {
    for (uint64_t written = ticks_.size(); count > 0;) {
      const uint64_t batch = 1 + below(std::min<uint64_t>(count, workingset::kMaxPlanes));
      for (uint64_t i = 0; i < batch; i++) {
        do_something(ticks_.emplace_back());
        write_snapshot(written + i + 1);
      }
      write_lines(written + 1, batch);
      written += batch;
      count -= batch;
    }
  }

  // What is in the file is what was done, in snapshots of so many ticks; those that are not whole yet are left out.
  void expect_snapshots_of(uint64_t ticks) {
    file_.flush();
    const profile::Profile profile = profile::read({file_.path()});
    ASSERT_EQ(profile.processes.size(), 1u);
    const profile::WorkingSet &set = profile.processes[0].workingset.value();
    const uint64_t whole = ticks_.size() / ticks;
    ASSERT_GE(set.snapshots.size(), whole);
    std::vector<Lines> found(set.snapshots.size());
    for (const profile::TouchedLines &lines : set.lines)
      profile::each_group(lines, [&](uint64_t group, const uint64_t *planes) {
        for (uint32_t i = 0; i < lines.count; i++)
          for (uint64_t bit = 0; bit < 64; bit++)
            if (planes[i] >> bit & 1 && lines.first + i < found.size())
              found[lines.first + i].insert(group * 64 + bit);
      });
    for (uint64_t k = 0; k < whole; k++) {
      Lines expected;
      std::map<uint64_t, uint32_t> owners, found_owners;
      for (uint64_t tick = k * ticks; tick < (k + 1) * ticks; tick++) {
        expected.insert(ticks_[tick].lines.begin(), ticks_[tick].lines.end());
        for (auto [line, owner] : ticks_[tick].owners)
          owners[line] = owner;
      }
      EXPECT_EQ(found[k], expected) << "snapshot " << k << " of " << ticks << " ticks";
      EXPECT_EQ(set.snapshots[k].begin_us, k * ticks * kTickUs);
      EXPECT_EQ(set.snapshots[k].end_us, (k + 1) * ticks * kTickUs);
      for (const profile::OwnershipChange &owned : set.owned)
        if (owned.snapshot == k)
          for (uint64_t line = owned.first; line < owned.first + owned.count; line++)
            found_owners[line] = owned.owner;
      ASSERT_EQ(found_owners.size(), owners.size());
      for (auto [line, owner] : owners)
        EXPECT_TRUE(same_owner(owner, found_owners[line])) << "line " << line;
    }
  }

  // The file numbers owners as they come.
  bool same_owner(uint32_t context, uint32_t owner) {
    return numbers_.try_emplace(context, owner).first->second == owner;
  }

  TemporaryFolder folder_;
  ProfileFile file_;
  std::mt19937 random_{GetParam()};
  std::vector<Tick> ticks_;
  std::map<uint32_t, uint32_t> numbers_;
};

TEST_P(Coalescing, KeepsWhatEachSnapshotHas) {
  write_ticks(8 * (5 + below(8))); // whole snapshots, as in the runtime
  expect_snapshots_of(1);
  for (uint64_t ticks : {2, 4, 8}) {
    numbers_.clear();
    workingset::set_coalesced_ticks(ticks);
    file_.flush();
    ASSERT_NE(file_.replace(workingset::coalesce_snapshots), 0u);
    expect_snapshots_of(ticks);
    if (::testing::Test::HasFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Coalescing, testing::Range(1u, 21u));

} // namespace
