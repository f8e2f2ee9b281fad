// What paths lead to: the same whether a list is there as a whole or made element by element.

#include "report/condition.h"

#include "base/fail.h"

#include <gtest/gtest.h>

namespace {

using report::Document;
using report::Json;

const std::vector<Json> kContexts = {
    {{"type", "Node"}, {"owner", 1}, {"size", {{"total", 10}, {"max", 4}}}},
    {{"type", "Leaf"}, {"owner", 2}, {"size", {{"total", 20}, {"max", 5}}}, {"rare", 1}},
    {{"type", "Node"}, {"owner", 3}, {"size", {{"total", 30}, {"max", 6}}}}};

Document report_of(bool in_pieces) {
  Document report;
  report.put("totals", {{"bytes", 60}, {"name", "all"}});
  if (in_pieces)
    report.list("contexts", kContexts.size(), [](size_t index) { return kContexts[index]; });
  else
    report.put("contexts", kContexts);
  report.list("losses", 0, nullptr);
  return report;
}

class Condition : public testing::TestWithParam<bool> {
protected:
  std::vector<double> at(const std::string &path) {
    return report::numbers_at(report_of(GetParam()), path);
  }
  std::string failure(const std::string &path) {
    try {
      at(path);
    } catch (const base::Failure &failure) {
      return failure.what();
    }
    return "";
  }
  using Numbers = std::vector<double>;
};

TEST_P(Condition, PathsLeadToNumbers) {
  EXPECT_EQ(at("totals.bytes"), Numbers{60});
  EXPECT_EQ(at("contexts[Node].size.total"), Numbers{40});
  EXPECT_EQ(at("contexts[owner=2].size.total"), Numbers{20});
  EXPECT_EQ(at("contexts[type~Lea].rare"), Numbers{1});
  EXPECT_EQ(at("contexts[type=Node].size.max"), (Numbers{4, 6}));
  EXPECT_EQ(at("contexts[Absent].anything.at.all"), Numbers{});
  EXPECT_EQ(at("contexts[~].rare"), Numbers{});
}

TEST_P(Condition, BelowSomeKeysOnlyPartsOfAWholeAddUp) {
  Document report;
  report.put("workingset",
             {{"owners",
               {{{"type", "Node"}, {"mean_bytes", 3}, {"most_bytes", 5}},
                {{"type", "Node"}, {"mean_bytes", 4}, {"most_bytes", 6}}}},
              {"snapshots", {{{"mark", "a"}, {"bytes", 7}}, {{"mark", "a"}, {"bytes", 8}}}}},
             "owners");
  auto numbers = [&](const char *path) { return report::numbers_at(report, path); };
  EXPECT_EQ(numbers("workingset.owners[Node].mean_bytes"), Numbers{7});
  EXPECT_EQ(numbers("workingset.owners[Node].most_bytes"), (Numbers{5, 6}));
  EXPECT_EQ(numbers("workingset.snapshots[mark=a].bytes"), (Numbers{7, 8}));
}

TEST_P(Condition, LengthsAreOfListsAndOfWhatWasFound) {
  EXPECT_EQ(at("len(contexts)"), Numbers{3});
  EXPECT_EQ(at("len(losses)"), Numbers{0});
  EXPECT_EQ(at("len(contexts[Node])"), Numbers{2});
  EXPECT_EQ(at("len(contexts[Absent])"), Numbers{0});
  EXPECT_EQ(at("len(totals.bytes)"), Numbers{1});
}

TEST_P(Condition, WhatMakesNoSenseIsSaid) {
  for (const char *path : {"absent", "totals.absent", "contexts[Node].absent"})
    EXPECT_NE(failure(path).find("the report has no such key"), std::string::npos) << path;
  EXPECT_NE(failure("contexts.size").find("contexts is a list; select of it"), std::string::npos);
  EXPECT_NE(failure("contexts").find("not a number in the report, but array"), std::string::npos);
  EXPECT_NE(failure("totals.name").find("but string"), std::string::npos);
  EXPECT_NE(failure("contexts[Node].size").find("but object"), std::string::npos);
  EXPECT_NE(failure("len()").find("a key is missing"), std::string::npos);
}

TEST_P(Condition, HoldsForAnyNumber) {
  auto condition = report::parse_condition("contexts[Node].size.max > 5");
  EXPECT_EQ(report::holds(condition, report_of(GetParam())), 6.0);
  condition = report::parse_condition("contexts[Node].size.max > 6");
  EXPECT_EQ(report::holds(condition, report_of(GetParam())), std::nullopt);
}

std::string refusal(const std::string &condition) {
  try {
    report::parse_condition(condition);
  } catch (const base::Failure &failure) {
    return failure.what();
  }
  return "";
}

TEST(ConditionMeasure, AnotherUnitThanTheKeysIsRefusedWithWhatToWrite) {
  const std::pair<const char *, const char *> kRefused[] = {
      {"contexts[node].used_share > 51",
       "'contexts[node].used_share > 51': `used_share` is a share, between 0 and 1; write 51% or "
       "0.51, not 51"},
      {"workingset.caches[L2].fits_share < 90", "write 90% or 0.9, not 90"},
      {"attributed_share < 5KiB", "write 5% or 0.05, not 5KiB"},
      {"attributed_share < -5%", "write 5% or 0.05, not -5%"},
      {"attributed_share < 500%", "write 50% or 0.5, not 500%"},
      {"totals.peak_bytes > 5ms", "`peak_bytes` is in bytes, 0 or more; write 5MiB, not 5ms"},
      {"totals.peak_bytes > 5%", "write 5MiB, not 5%"},
      {"totals.peak_bytes > -1", "write 1MiB, not -1"},
      {"totals.size.max > 5 s", "`size` is in bytes, 0 or more; write 5MiB, not 5 s"},
      {"structs[S].advice.size_after > 5ms", "`size_after` is in bytes"},
      {"totals.run_us > 5MiB", "`run_us` is a time, 0 or more; write 5ms, not 5MiB"},
      {"contexts[stack~a.b].lifetime_us.max > 5%", "`lifetime_us` is a time"},
      {"totals.alloc_count > 5KiB", "`alloc_count` has no unit; write 5, not 5KiB"},
      {"contexts[node].reads > 5ms", "`reads` has no unit"},
      {"totals.byte_us > 5ms", "`byte_us` has no unit"},
      {"structs[node].disparity > 10", "`disparity` is a share, between 0 and 1; write 10% or 0.1"},
      {"len(findings) > 5%", "`len(findings)` has no unit"},
      {"totals.used_percent.max > 50%", "is in percent, between 0 and 100; write 50, not 50%"},
      {"totals.used_percent.max > 101", "is in percent, between 0 and 100"},
  };
  for (const auto &[condition, sentence] : kRefused)
    EXPECT_NE(refusal(condition).find(sentence), std::string::npos)
        << condition << ": " << refusal(condition);
}

TEST(ConditionMeasure, WhatEveryNumberOrNoneFulfilsIsRefused) {
  for (const char *condition :
       {"attributed_share > 1", "attributed_share > 100%", "attributed_share < 0",
        "totals.peak_bytes < 0", "totals.used_percent.max > 100", "totals.alloc_count < 0"})
    EXPECT_NE(refusal(condition).find("so this never holds"), std::string::npos) << condition;
  for (const char *condition : {"attributed_share <= 1", "attributed_share >= 0",
                                "totals.run_us >= 0us", "totals.alloc_count >= 0"})
    EXPECT_NE(refusal(condition).find("so this always holds"), std::string::npos) << condition;
}

TEST(ConditionMeasure, TheKeysUnitAndPlainNumbersAreTaken) {
  for (const char *condition : {"contexts[node].used_share < 51%",
                                "contexts[node].used_share < 0.5",
                                "contexts[node].used_share == 0",
                                "attributed_share < 1",
                                "attributed_share > 0",
                                "attributed_share != 100%",
                                "totals.peak_bytes > 64MiB",
                                "totals.peak_bytes > 64M",
                                "totals.peak_bytes != 0",
                                "totals.size.total > 5kB",
                                "totals.run_us > 5ms",
                                "totals.run_us > 5000",
                                "totals.alloc_count > 5k",
                                "workingset.miss_curve[L2].miss_ratio > 5%",
                                "workingset.miss_curve[L2].miss_ratio > 1.2",
                                "totals.alloc_count >= 1",
                                "totals.byte_us > 5G",
                                "len(losses) > 0",
                                "totals.used_percent.max < 50",
                                "totals.used_percent.total > 1M",
                                "fields.findings[rule=split].saves.amount > 5KiB",
                                "workingset.snapshots[mark=a].begin > 5ms",
                                "contexts[type=a_share].reads > 51"})
    EXPECT_EQ(refusal(condition), "") << condition;
}

INSTANTIATE_TEST_SUITE_P(WholeAndInPieces, Condition, testing::Bool());

} // namespace
