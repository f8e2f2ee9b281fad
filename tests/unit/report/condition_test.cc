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

INSTANTIATE_TEST_SUITE_P(WholeAndInPieces, Condition, testing::Bool());

} // namespace
