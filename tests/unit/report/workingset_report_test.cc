// The working set as text and as JSON: the documented keys, one table when it is asked for, the same sums.

#include "report/workingset.h"

#include "report/perfetto.h"
#include "report/workingset_diff.h"
#include "tests/unit/profile/workingset_builder.h"

#include "analyze/heap.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using profile_builder::WorkingSetBuilder;

analyze::WorkingSetResult result_of(uint32_t unit, const analyze::WorkingSetQuery &query = {}) {
  WorkingSetBuilder builder(unit);
  builder.owned(0, 100000, "Node");
  for (int i = 0; i < 8; i++)
    builder.touch(0, 50000);
  for (int i = 0; i < 8; i++)
    builder.touch(100000, 1000);
  profile::Profile profile = builder.finish();
  image::Symbols symbols = image::open(analyze::module_files(profile));
  return analyze::workingsets(profile, symbols, query).front();
}

TEST(WorkingSetJson, HasTheDocumentedKeys) {
  report::Json json = report::workingset_document(result_of(ASSAY_TIME_WALL), 0);
  for (const char *key :
       {"schema", "program", "machine", "unit", "line_size", "time_unit", "losses", "findings",
        "total_lines", "total_bytes", "mean_bytes", "largest_bytes", "owners", "filtered_out",
        "periods", "miss_curve", "snapshots", "phases", "caches"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["largest_bytes"], 50000 * 64);
  EXPECT_EQ(json["mean_bytes"], 25500 * 64);
  EXPECT_EQ(json["total_bytes"], 51000 * 64);
  EXPECT_FALSE(json["findings"].empty());
  EXPECT_EQ(json["owners"].size(), 2u);
  EXPECT_EQ(json["periods"].back()["snapshots"], 16);
  uint64_t before = UINT64_MAX;
  for (const report::Json &point : json["miss_curve"]) {
    EXPECT_LE(point["least_misses"], point["misses"]);
    EXPECT_LE(point["misses"], before);
    before = point["misses"];
    EXPECT_TRUE(point.contains("misses_per_second"));
  }
  EXPECT_EQ(before, 51000u); // the largest cache misses what is new
}

TEST(WorkingSetText, ManyProcessesAreATableAndTheLargest) {
  std::vector<analyze::WorkingSetResult> results(300, result_of(ASSAY_TIME_WALL));
  for (size_t i = 0; i < results.size(); i++)
    results[i].process.pid = 1000 + i;
  results[200].snapshots[results[200].largest].lines *= 4;
  report::WorkingSetTextOptions options;
  std::string text = report::workingsets_text(results, options, report::Style());
  EXPECT_EQ(text.find("assay workingset: 300 processes\n  934 MiB were ever touched in all"), 0u)
      << text.substr(0, 300);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 250);
  EXPECT_NE(text.find("12.2 MiB    1.56 MiB      3.11 MiB         16     1200"), std::string::npos)
      << text.substr(0, 800);
  EXPECT_NE(text.find("  290 more; --top 300 shows them"), std::string::npos);
  options.top = 300;
  text = report::workingsets_text(results, options, report::Style());
  EXPECT_NE(text.find(" 1299  "), std::string::npos);
  results.resize(3); // a few: all of each
  text = report::workingsets_text(results, options, report::Style());
  EXPECT_EQ(text.find("ever touched in all"), std::string::npos);
}

TEST(WorkingSetJson, RatesAreThoseOfTheClock) {
  auto point = [](uint32_t unit) {
    return report::workingset_document(result_of(unit), 0)["miss_curve"].front();
  };
  EXPECT_TRUE(point(ASSAY_TIME_ACCESSES).contains("miss_ratio"));
  EXPECT_TRUE(point(ASSAY_TIME_CPU).contains("misses_per_second"));
  EXPECT_FALSE(point(ASSAY_TIME_ACCESSES).contains("misses_per_second"));
  EXPECT_FALSE(point(ASSAY_TIME_MARKS).contains("misses_per_second"));
  EXPECT_TRUE(point(ASSAY_TIME_MARKS).contains("misses_per_snapshot"));
}

// The signature of a lambda, or of what has templates for arguments, leaves room for who fills the phase.
TEST(WorkingSetText, PhasesNameFunctionsBriefly) {
  const std::string signature = "std::_Function_handler<void (int), main::{lambda(" +
                                std::string(160, 'x') + ")#1}>::_M_invoke(int&&)";
  analyze::WorkingSetResult result = result_of(ASSAY_TIME_WALL);
  ASSERT_GE(result.phases.size(), 2u);
  for (analyze::Phase &phase : result.phases)
    phase.functions = {{signature, 8}};
  std::string text = report::workingset_text(result, {}, report::Style());
  EXPECT_NE(text.find("std::_Funct…r::_M_invoke  "), std::string::npos) << text;
  EXPECT_EQ(text.find(std::string(30, 'x')), std::string::npos) << text;
  analyze::WorkingSetDiff diff;
  diff.same = false;
  analyze::PhaseChange row;
  row.function = signature;
  row.owner = {"heap", "fill(std::vector<int>&) at a.cc:12", "Node"};
  row.new_side.phases = 1;
  diff.phases = {row};
  text = report::diff_text(diff, 0, report::Style());
  EXPECT_NE(text.find("(new)"), std::string::npos) << text;
  EXPECT_NE(text.find("fill at a.cc:12"), std::string::npos) << text;
  EXPECT_EQ(text.find(std::string(30, 'x')), std::string::npos) << text;
}

TEST(WorkingSetText, QuestionsHaveTheirTables) {
  std::string text = report::workingset_text(result_of(ASSAY_TIME_ACCESSES), {}, report::Style());
  for (const char *heading : {"What is worth changing?", "Which phases does the run have?",
                              "What is in the working set?", "How large is it over longer periods?",
                              "Does it fit?", "How much would a cache of this size miss?"})
    EXPECT_NE(text.find(heading), std::string::npos) << heading;
  EXPECT_LT(text.find("What is worth changing"), text.find("Which phases"));
}

TEST(WorkingSetText, MarksAreCounted) {
  const std::vector<analyze::WorkingSetResult> results = {result_of(ASSAY_TIME_MARKS)};
  const std::string text =
      report::workingsets_text(results, report::WorkingSetTextOptions(), report::Style());
  EXPECT_NE(text.find("  16 snapshots in 16.0 M marks; the working set is "), std::string::npos)
      << text;
  EXPECT_NE(text.find(" at its largest (at mark "), std::string::npos) << text;
}

TEST(WorkingSetText, NothingTouchedIsNoError) {
  for (int snapshots : {1, 2, 5}) {
    WorkingSetBuilder builder;
    for (int i = 0; i < snapshots; i++)
      builder.touch(0, 0);
    profile::Profile profile = builder.finish();
    image::Symbols symbols = image::open(analyze::module_files(profile));
    analyze::WorkingSetResult result = analyze::workingsets(profile, symbols, {}).front();
    std::string text = report::workingset_text(result, {}, report::Style());
    EXPECT_NE(text.find("the working set is 0 B on average, 0 B at its largest"),
              std::string::npos);
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    std::string json = report::workingset_document(result, 0).dump();
    EXPECT_EQ(json.find("nan"), std::string::npos);
    EXPECT_NE(report::perfetto_trace(profile, {result}, 10).dump().find("working set"),
              std::string::npos);
  }
}

TEST(WorkingSetText, ASortKeyLeavesOneTable) {
  report::WorkingSetTextOptions options;
  options.sort = "most";
  std::string text =
      report::workingset_text(result_of(ASSAY_TIME_ACCESSES), options, report::Style());
  EXPECT_NE(text.find("What has the most lines at one time?"), std::string::npos);
  for (const char *heading : {"What is worth changing", "Which phases", "How large", "Does it fit"})
    EXPECT_EQ(text.find(heading), std::string::npos) << heading;
}

// A cell is cut in its middle: of two owners that do not fit it would make one that is neither.
TEST(WorkingSetText, OfTwoOwnersOfAPhaseTheSecondIsShownWhereBothFit) {
  analyze::WorkingSetResult result = result_of(ASSAY_TIME_WALL);
  ASSERT_GE(result.phases.size(), 2u);
  result.owners = {{"heap", "first_function_of_the_program(int) at a.cc:10", "First"},
                   {"heap", "second_function_of_the_program at a.cc:20", "Second"}};
  for (analyze::Phase &phase : result.phases)
    phase.owners = {{0, phase.lines / 2}, {1, phase.lines / 4}};
  auto phases = [&](unsigned width) {
    report::Style style;
    style.width = width;
    const std::string text = report::workingset_text(result, {}, style);
    const size_t begin = text.find("filled by");
    return text.substr(begin, text.find("What is in the working set?") - begin);
  };
  EXPECT_EQ(phases(100).find("a.cc:20"), std::string::npos) << phases(100);
  EXPECT_NE(phases(100).find("a.cc:10"), std::string::npos) << phases(100);
  EXPECT_NE(phases(200).find("First from first_function_of_the_program at a.cc:10"),
            std::string::npos)
      << phases(200);
  EXPECT_EQ(phases(200).find("…"), std::string::npos) << phases(200);
  EXPECT_NE(phases(200).find("a.cc:20"), std::string::npos) << phases(200);
}

TEST(WorkingSetText, WhatAFilterLeavesOutIsSaid) {
  analyze::WorkingSetQuery query;
  query.filter = "Node";
  std::string text =
      report::workingset_text(result_of(ASSAY_TIME_WALL, query), {}, report::Style());
  EXPECT_NE(text.find("--filter left out 1 owner, with 31.2 KiB on average"), std::string::npos)
      << text;
  query.filter = "nobody";
  text = report::workingset_text(result_of(ASSAY_TIME_WALL, query), {}, report::Style());
  EXPECT_NE(text.find("--filter 'nobody' matches none of its 2 owners"), std::string::npos);
}

} // namespace
