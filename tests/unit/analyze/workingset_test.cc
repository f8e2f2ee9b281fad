// The working set of random profiles, folded, against sets of lines; findings of known programs.

#include "analyze/workingset.h"

#include "tests/unit/profile/workingset_builder.h"

#include "analyze/heap.h"
#include "base/fail.h"

#include <gtest/gtest.h>

#include <set>

namespace {

using analyze::WorkingSetQuery;
using analyze::WorkingSetResult;
using profile_builder::WorkingSetBuilder;

std::vector<WorkingSetResult> results_of(const profile::Profile &profile,
                                         const WorkingSetQuery &query = {}) {
  image::Symbols symbols = image::open(analyze::module_files(profile));
  return analyze::workingsets(profile, symbols, query);
}

WorkingSetResult result_of(WorkingSetBuilder &builder, const WorkingSetQuery &query = {}) {
  return results_of(builder.finish(), query).front();
}

// Addresses of the touched lines of each snapshot, by the size that they are folded to.
std::vector<std::set<uint64_t>> touched(const profile::WorkingSet &set, uint64_t line_bytes) {
  std::vector<std::set<uint64_t>> snapshots(set.snapshots.size());
  for (const profile::TouchedLines &lines : set.lines)
    profile::each_group(lines, [&](uint64_t group, const uint64_t *planes) {
      for (uint32_t i = 0; i < lines.count; i++)
        for (uint64_t bit = 0; bit < 64; bit++)
          if (planes[i] >> bit & 1)
            snapshots[lines.first + i].insert((group * 64 + bit) * set.line_bytes / line_bytes);
    });
  return snapshots;
}

TEST(WorkingSet, FoldedLinesAreTheUnionOfTheirParts) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    profile::Profile profile = profile_builder::random_profile(seed);
    const auto &set = profile.processes[0].workingset;
    if (!set)
      continue;
    for (uint64_t line_bytes : {64, 128, 1024, 4096, 8192, 1 << 20}) {
      WorkingSetQuery query;
      query.line_bytes = line_bytes;
      WorkingSetResult result = results_of(profile, query).front();
      EXPECT_EQ(result.line_bytes, line_bytes);
      auto expected = touched(*set, line_bytes), pages = touched(*set, 4096);
      std::set<uint64_t> ever, before;
      for (size_t i = 0; i < expected.size(); i++) {
        const analyze::SnapshotRow &row = result.snapshots[i];
        EXPECT_EQ(row.lines, expected[i].size());
        EXPECT_EQ(row.pages, pages[i].size());
        uint64_t shared = 0, fresh = 0, owned = 0;
        for (uint64_t line : expected[i]) {
          shared += before.count(line);
          fresh += ever.insert(line).second;
        }
        EXPECT_EQ(row.shared_with_previous, shared);
        EXPECT_EQ(row.new_lines, fresh);
        for (const analyze::OwnerCount &owner : row.owners)
          owned += owner.lines;
        EXPECT_EQ(owned, row.lines);
        before = expected[i];
      }
      EXPECT_EQ(result.total_lines, ever.size());
      for (const analyze::Phase &phase : result.phases) {
        std::set<uint64_t> lines;
        for (size_t i = phase.first; i <= phase.last; i++)
          lines.insert(expected[i].begin(), expected[i].end());
        EXPECT_EQ(phase.lines, lines.size());
      }
      double mean = 0;
      uint64_t fresh = 0;
      for (const analyze::OwnerRow &row : result.owner_rows) {
        mean += row.mean_lines;
        fresh += row.new_lines;
      }
      EXPECT_NEAR(mean, result.mean_lines, 1e-6 * (1 + mean));
      EXPECT_EQ(fresh, result.total_lines);
    }
  }
}

TEST(WorkingSet, AFoldedLineBelongsToMostOfIt) {
  WorkingSetBuilder builder;
  builder.owned(0, 4, "First");
  builder.owned(4, 2, "Few");
  builder.owned(6, 2, "Many");
  builder.touch(2, 6); // of lines of 256 bytes: two of First; two of Few, then two of Many
  builder.touch(5, 3); // one of Few, two of Many
  WorkingSetQuery query;
  query.line_bytes = 256;
  WorkingSetResult result = result_of(builder, query);
  auto type = [&](const analyze::OwnerCount &lines) { return result.owners[lines.owner].type; };
  ASSERT_EQ(result.snapshots[0].owners.size(), 2u);
  EXPECT_EQ(type(result.snapshots[0].owners[0]) + type(result.snapshots[0].owners[1]), "FirstFew");
  ASSERT_EQ(result.snapshots[1].owners.size(), 1u);
  EXPECT_EQ(type(result.snapshots[1].owners[0]), "Many");
}

TEST(WorkingSet, OtherSizesOfLinesAreRefused) {
  for (uint64_t bytes : {1, 32, 63, 96, 192, 100}) {
    WorkingSetBuilder builder;
    builder.touch(0, 1);
    WorkingSetQuery query;
    query.line_bytes = bytes;
    EXPECT_THROW(result_of(builder, query), base::Failure) << bytes;
  }
}

TEST(WorkingSet, OwnersAreSortedAndFiltered) {
  auto result = [](const std::string &sort, const std::string &filter) {
    WorkingSetBuilder builder;
    builder.owned(0, 100, "Beta");
    builder.owned(1000, 500, "Alpha");
    builder.touch(0, 100);
    builder.touch(0, 100);
    builder.touch(1000, 150);
    WorkingSetQuery query;
    query.sort = sort;
    query.filter = filter;
    return result_of(builder, query);
  };
  auto first = [&](const std::string &sort) {
    WorkingSetResult sorted = result(sort, "");
    return sorted.owners[sorted.owner_rows.front().owner].type;
  };
  EXPECT_EQ(first(""), "Beta");
  EXPECT_EQ(first("lines"), "Beta");
  EXPECT_EQ(first("most"), "Alpha");
  EXPECT_EQ(first("new"), "Alpha");
  EXPECT_EQ(first("time"), "Beta");
  EXPECT_EQ(first("name"), "Alpha");
  EXPECT_THROW(analyze::owner_order("nonsense"), base::Failure);
  WorkingSetResult filtered = result("", "Alph.$");
  ASSERT_EQ(filtered.owner_rows.size(), 1u);
  EXPECT_DOUBLE_EQ(filtered.owner_rows[0].mean_lines, 50);
  EXPECT_EQ(filtered.filtered_owners, 1u);
  EXPECT_NEAR(filtered.filtered_mean_lines, 200.0 / 3, 1e-9);
  EXPECT_THROW(result("", "("), base::Failure);
}

std::vector<std::string> rules(const WorkingSetResult &result) {
  std::vector<std::string> list;
  for (const analyze::Finding &finding : result.findings)
    list.push_back(finding.rule);
  return list;
}

using Rules = std::vector<std::string>;

TEST(WorkingSetFindings, APhaseThatDoesNotFitNamesItsOwner) {
  WorkingSetBuilder builder;
  builder.owned(0, 100000, "Small");
  builder.owned(100000, 100000, "Large");
  for (int i = 0; i < 10; i++)
    builder.touch(0, 1000);
  for (int i = 0; i < 10; i++)
    builder.touch(100000, 50000); // 3.05 MiB of the 1 MiB of L2
  WorkingSetResult result = result_of(builder);
  ASSERT_EQ(rules(result), Rules{"does_not_fit"});
  const analyze::Finding &finding = result.findings[0];
  EXPECT_NE(finding.message.find("the phase from 10.0 M accesses on does not fit in L2 (needs 3.05 "
                                 "MiB of 1.00 MiB); 100 % of it is `Large` objects from "),
            std::string::npos)
      << finding.message;
  EXPECT_DOUBLE_EQ(finding.saves.amount, 50000 * 64 - (1 << 20));
}

TEST(WorkingSetFindings, ALittleTooMuchSaysHowMuchLessWouldDo) {
  WorkingSetBuilder builder;
  builder.owned(0, 18000, "Node"); // 1.10 MiB
  for (int i = 0; i < 10; i++)
    builder.touch(0, 18000);
  WorkingSetResult result = result_of(builder);
  ASSERT_EQ(rules(result), Rules{"almost_fits"});
  EXPECT_EQ(result.findings[0].action, "use 9 % less of that, and it fits"); // 1616 of 18000
  EXPECT_EQ(result.findings[0].message.find("the run almost fits in L2 (needs 1.10 MiB"), 0u);
}

TEST(WorkingSetFindings, AStreamIsNoSetThatDoesNotFit) {
  WorkingSetBuilder builder;
  builder.owned(0, 1000000, "char");
  for (uint64_t i = 0; i < 10; i++)
    builder.touch(i * 50000, 50000 + 10000); // the last ones in the next snapshot, too
  WorkingSetResult result = result_of(builder);
  ASSERT_EQ(rules(result), Rules{"streaming"});
  EXPECT_NE(result.findings[0].message.find("31.1 MiB of `char` objects"), std::string::npos);
}

TEST(WorkingSetFindings, AnArrayThatIsGoneOverAgainAndAgainIsReusedLate) {
  WorkingSetBuilder builder;
  builder.owned(0, 1000000, "Row");
  for (uint64_t i = 0; i < 20; i++)
    builder.touch(i % 5 * 50000, 50000);
  EXPECT_EQ(rules(result_of(builder)), Rules{"little_reuse"});
}

TEST(WorkingSetFindings, FewBytesOfManyPages) {
  auto result = [](const WorkingSetQuery &query) {
    WorkingSetBuilder builder;
    builder.owned(0, 64 * 4000, "Node");
    for (int i = 0; i < 10; i++)
      builder.touch(0, 4000, 64); // 250 KiB in 15.6 MiB
    return result_of(builder, query);
  };
  WorkingSetQuery query;
  EXPECT_EQ(rules(result(query)), Rules{"sparse_pages"});
  query.caches = {{"TLB", 32 << 20}};
  EXPECT_EQ(rules(result(query)), Rules{});
  // Folded to pages, they are looked at as such.
  query.caches = {{"TLB", 6 << 20}};
  query.line_bytes = 4096;
  WorkingSetResult pages = result(query);
  ASSERT_EQ(rules(pages), Rules{"does_not_fit"});
  EXPECT_NE(pages.findings[0].message.find("does not fit in TLB (needs 15.6 MiB of 6.00 MiB)"),
            std::string::npos);
}

TEST(WorkingSetFindings, WithoutAnOwnerOrInAShortRunThereIsNothingToSay) {
  WorkingSetBuilder nobody;
  for (int i = 0; i < 10; i++)
    nobody.touch(0, 50000);
  EXPECT_EQ(rules(result_of(nobody)), Rules{});
  WorkingSetBuilder brief;
  brief.owned(0, 50000, "Node");
  for (int i = 0; i < 3; i++)
    brief.touch(0, 50000);
  EXPECT_EQ(rules(result_of(brief)), Rules{});
}

} // namespace
