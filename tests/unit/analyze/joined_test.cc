// The join of what tools say, of results that are made by hand.

#include "analyze/joined.h"

#include "base/fail.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using analyze::Finding;
using analyze::Gain;
using analyze::JoinedResult;
using analyze::JoinedRow;

constexpr uint64_t kL1 = 32 << 10, kL2 = 2 << 20;

profile::Process process() {
  profile::Process one;
  one.executable = "/bin/app";
  one.machine.emplace();
  one.machine->l1d_bytes = kL1;
  one.machine->l2_bytes = kL2;
  return one;
}

image::Frame frame(const std::string &function, uint32_t line) {
  image::Frame f;
  f.function = f.linkage_name = function;
  f.file = "/src/tree.cc";
  f.line = line;
  return f;
}

Finding finding(const std::string &rule, double weight, const analyze::Subject &about,
                Gain gain = Gain::kTime) {
  Finding one;
  one.rule = rule;
  one.message = rule + " says so";
  one.action = "do something about " + rule;
  one.weight = weight;
  one.about = about;
  one.gain = gain;
  return one;
}

// 1,000 Nodes of 2 lines from build() at tree.cc:16, in a working set of two phases; of a line a
// quarter is used; `key` and `next` are wanted first.
struct Results {
  analyze::HeapResult heap;
  std::vector<analyze::WorkingSetResult> sets;
  analyze::FieldsResult fields;
  analyze::ObjectsResult objects;
  analyze::ValuesResult values;

  Results() {
    heap.processes = {process()};
    heap.run_us = heap.processes_us = 1000000;
    add_site("build(int)", 16, "struct Node", 1000, 128);
    add_site("parse(char*)", 40, "Token", 5000, 16);
    add_workingset();
    add_objects();
    add_fields();
  }

  void add_site(const std::string &function, uint32_t line, const std::string &type, uint64_t count,
                uint64_t size) {
    analyze::HeapContextRow row;
    row.frames = {frame(function, line)};
    row.type = type;
    row.sums.all.alloc_count = count;
    row.sums.all.size_total = count * size;
    row.sums.all.reads = count * 10;
    row.sums.all.blocks_spanned = row.sums.all.blocks_touched = count * 2;
    row.sums.at_peak_bytes = row.sums.peak_bytes = count * size;
    heap.totals.add(row.sums);
    heap.sites.push_back(row);
  }

  void add_workingset() {
    analyze::WorkingSetResult set;
    set.process = process();
    set.owners = {{"heap", "build(int) at tree.cc:16", "struct Node"}, {"global", "table", ""}};
    for (uint64_t i = 0; i < 4; i++) {
      analyze::SnapshotRow row;
      row.when.begin = i * 100;
      row.when.end = i * 100 + 100;
      row.owners = i < 1 ? std::vector<analyze::OwnerCount>{{1, 500}}
                         : std::vector<analyze::OwnerCount>{{0, 2000}, {1, 100}};
      for (const auto &owner : row.owners)
        row.lines += owner.lines;
      set.snapshots.push_back(row);
    }
    set.phases.resize(2);
    set.phases[0].last = 0;
    set.phases[0].lines = set.phases[0].mean_lines = 500;
    set.phases[0].owners = {{1, 500}};
    set.phases[1].first = 1;
    set.phases[1].last = 3;
    set.phases[1].lines = set.phases[1].mean_lines = 2100;
    set.phases[1].owners = {{0, 2000}, {1, 100}};
    set.caches = {{"L1", kL1, 0, {}}, {"L2", kL2, 1, {}}, {"TLB", 6 << 20, 1, {}}};
    set.owner_rows.resize(2);
    set.owner_rows[1].owner = 1;
    set.total_lines = 2500;
    sets.push_back(std::move(set));
  }

  void add_objects() {
    analyze::ObjectRow row;
    row.kind = "heap";
    row.name = "build at tree.cc:16";
    row.type = "struct Node";
    row.sums.used_units = 8;
    row.sums.line_units = 32;
    objects.rows.push_back(row);
    objects.process = process();
  }

  void add_fields() {
    analyze::StructRow row;
    row.record.name = "Node";
    for (const char *name : {"key", "text", "next"}) {
      analyze::Member member;
      member.name = name;
      member.first = member.last = static_cast<uint32_t>(row.record.leaves.size());
      row.record.leaves.emplace_back().name = name;
      member.accesses = member.name == "text" ? 0 : 100;
      row.members.push_back(member);
    }
    row.advice.is_worth_it = true;
    row.advice.lines_before = 2;
    row.advice.lines_after = 1;
    row.advice.layout.order = {0, 2, 1};
    analyze::FieldRow field;
    field.places = {{"walk(Node*)", 77, 1000}};
    row.fields = {field};
    fields.structs.push_back(row);
    fields.process = process();
  }

  JoinedResult join(const std::string &sort = "") const {
    return analyze::join({&heap,
                          &sets,
                          &fields,
                          &objects,
                          &values,
                          {{"heap", heap.findings},
                           {"workingset", sets[0].findings, false},
                           {"fields", fields.findings},
                           {"objects", objects.findings},
                           {"values", values.findings, false}}},
                         {sort, ""});
  }
};

const JoinedRow &row_of(const std::vector<JoinedRow> &rows, const std::string &type) {
  return *std::find_if(rows.begin(), rows.end(), [&](auto &row) { return row.type == type; });
}

TEST(Joined, ARowHasWhatEachToolSaysOfAType) {
  const Results results;
  const JoinedResult joined = results.join();
  const JoinedRow &node = row_of(joined.types, "Node");
  ASSERT_TRUE(node.heap && node.set && node.words && node.fields);
  EXPECT_EQ(node.heap->all.alloc_count, 1000u);
  EXPECT_EQ(node.set->most_lines, 2000u);
  EXPECT_EQ(node.set->phase_lines, 2000u);
  EXPECT_EQ(node.set->phase, 1u);
  EXPECT_DOUBLE_EQ(node.set->time_share, .75);
  EXPECT_DOUBLE_EQ(node.set->mean_lines, 1500);
  EXPECT_DOUBLE_EQ(*node.used_share(), .25);
  EXPECT_STREQ(node.used_by(), "objects");
  EXPECT_EQ(node.first_members(), (std::vector<std::string>{"key", "next"}));
  EXPECT_EQ(joined.types.front().type, "Node"); // wastes the most
  EXPECT_EQ(results.join("count").types.front().type, "Token");
  EXPECT_THROW(results.join("nothing"), base::Failure);
}

TEST(Joined, SitesMeetByFunctionLineAndType) {
  const Results results;
  const JoinedResult joined = results.join();
  const JoinedRow &node = row_of(joined.sites, "Node");
  EXPECT_EQ(node.site, "build at tree.cc:16");
  EXPECT_TRUE(node.heap && node.set && node.words && node.fields);
  EXPECT_EQ(joined.sites.size(), 3u); // Node, Token, the global
  // A phase's owner leads to the row of its site, wherever sorting has put it.
  for (const char *sort : {"", "count", "set", "bytes"}) {
    const JoinedResult sorted = results.join(sort);
    const auto &owner = sorted.phases[1].owners.front();
    ASSERT_TRUE(owner.row);
    EXPECT_EQ(sorted.sites[*owner.row].type, "Node") << sort;
  }
  EXPECT_EQ(joined.phases[0].fits, "L1");
  EXPECT_EQ(joined.phases[1].fits, "L2"); // never the TLB
}

TEST(Joined, PartsSumToTheWhole) {
  Results results;
  results.add_site("other(int)", 50, "struct Node", 7, 128);
  results.add_site("raw(int)", 60, "", 9, 1000);
  const JoinedResult joined = results.join();
  for (const auto *rows : {&joined.types, &joined.sites}) {
    analyze::HeapSums sums;
    for (const JoinedRow &row : *rows)
      if (row.heap)
        sums.add(*row.heap);
    EXPECT_EQ(sums.all.alloc_count, results.heap.totals.all.alloc_count);
    EXPECT_EQ(sums.all.size_total, results.heap.totals.all.size_total);
    EXPECT_EQ(sums.accesses(), results.heap.totals.accesses());
  }
  EXPECT_EQ(row_of(joined.types, "Node").heap->all.alloc_count, 1007u);
}

TEST(Joined, AToolThatWasNotRecordedIsAbsentNotZero) {
  const Results results;
  JoinedResult heap_alone = analyze::join(
      {&results.heap, nullptr, nullptr, nullptr, nullptr, {{"heap", results.heap.findings}}}, {});
  const JoinedRow &node = row_of(heap_alone.types, "Node");
  EXPECT_TRUE(node.heap && !node.set && !node.words && !node.fields);
  EXPECT_STREQ(node.used_by(), "heap");
  EXPECT_DOUBLE_EQ(*node.used_share(), 1);
  for (const auto &tool : heap_alone.tools)
    EXPECT_EQ(tool.recorded, tool.name == "heap") << tool.name;
  JoinedResult fields_alone =
      analyze::join({nullptr, nullptr, &results.fields, nullptr, nullptr, {}}, {});
  EXPECT_FALSE(row_of(fields_alone.types, "Node").heap);
  EXPECT_FALSE(row_of(fields_alone.types, "Node").used_share());
  EXPECT_TRUE(analyze::join({}, {}).types.empty());
  // The heap's frame of a program that was built for other tools is no answer.
  Results others;
  others.heap.measured = false;
  EXPECT_FALSE(others.join().from.heap);
  EXPECT_FALSE(others.join().tools.at(0).recorded);
}

TEST(Joined, OfSeveralProcessesTheOneWithTheMostOfARowCounts) {
  Results results;
  analyze::WorkingSetResult other = results.sets[0];
  other.process.pid = 7;
  other.total_lines = 9000;
  for (auto &snapshot : other.snapshots)
    snapshot.owners = {{1, 700}};
  for (auto &phase : other.phases)
    phase.owners = {{1, 700}};
  results.sets.push_back(other);
  const JoinedResult joined = results.join();
  ASSERT_EQ(joined.phases.size(), 4u);
  EXPECT_EQ(joined.phases[0].set->process.pid, 7u); // the larger one first
  const JoinedRow &node = row_of(joined.types, "Node");
  EXPECT_EQ(node.set->most_lines, 2000u);
  EXPECT_EQ(node.set->phase, 3u);
  for (const JoinedRow &row : joined.sites)
    if (row.kind == "global") {
      EXPECT_EQ(row.set->most_lines, 700u);
      EXPECT_LT(row.set->phase, 2u);
    }
}

TEST(Joined, FindingsAboutOneThingAreOne) {
  Results results;
  const analyze::Subject node{"struct Node", "build at tree.cc:16", "", "", 0};
  results.sets[0].findings = {finding("does_not_fit", .3, node, Gain::kWorkingSet)};
  results.objects.findings = {finding("fragmented", .4, node, Gain::kLineUse)};
  results.fields.findings = {finding("order", .5, {"Node", "", "", "", 0}, Gain::kLineUse)};
  results.heap.findings = {
      finding("cold_bytes", .5, {"Token", "parse at tree.cc:40", "", "", 0}, Gain::kMemory)};
  const JoinedResult joined = results.join();
  ASSERT_EQ(joined.findings.size(), 2u);
  const analyze::JoinedFinding &first = joined.findings[0];
  EXPECT_EQ(first.finding.about.type, "Node");
  EXPECT_EQ(first.parts.size(), 3u);
  EXPECT_EQ(first.tools(), (std::vector<std::string>{"heap", "workingset", "fields", "objects"}));
  EXPECT_EQ(first.finding.message, "phase 2 (75 % of the run) works on 131 KiB, which does not fit "
                                   "in L1 (32.0 KiB); 125 KiB of it is `Node` from "
                                   "build at tree.cc:16, of which 25 % of each line is used");
  EXPECT_EQ(first.finding.action,
            "put `key` and `next` first in `Node` (`assay fields apply Node FILES`)");
  // 125 KiB fit into L2, where another layout saves less; tools that agree add a tenth.
  EXPECT_NEAR(first.finding.weight, 1 - (1 - .3) * (1 - .1 * .4 * .4) * (1 - .1 * .5 * .4), 1e-9);
  EXPECT_NEAR(joined.findings[1].finding.weight, .25, 1e-9); // memory alone counts half
  // Of objects that are given back at once, no more than is held at a time.
  results.heap.peak_live_bytes = 800000;
  EXPECT_NEAR(results.join().findings[1].finding.weight, .5 * 80000 / 800000, 1e-9);
}

// The order of its members is as good as it can be: then what else helps its layout is the action, and not that of a
// lighter finding about something else.
TEST(Joined, TheActionIsAboutTheHeadline) {
  Results results;
  const analyze::Subject node{"struct Node", "build at tree.cc:16", "", "", 0};
  results.fields.structs[0].advice.is_worth_it = false;
  results.fields.structs[0].set_count = 1000;
  results.heap.findings = {finding("wasted_lines", .6, node, Gain::kLineUse),
                           finding("churn", .5, node, Gain::kCalls)};
  results.heap.findings[1].saves = {100000, "allocations"};
  const std::string no_order = "no other order of its members helps: keep what is seldom used of "
                               "it elsewhere, behind a pointer, or make it smaller";
  EXPECT_EQ(results.join().findings[0].finding.action,
            no_order + "; also do something about churn");
  results.objects.findings = {finding("header_only", .01, node, Gain::kLineUse)};
  JoinedResult joined = results.join();
  ASSERT_EQ(joined.findings.size(), 1u);
  EXPECT_EQ(joined.findings[0].finding.rule, "wasted_lines");
  EXPECT_EQ(joined.findings[0].finding.action,
            "do something about header_only; also do something about churn");
  results.objects.findings[0].rule = "fragmented"; // says that they shall lie together, too
  EXPECT_EQ(results.join().findings[0].finding.action,
            no_order + "; also do something about churn");
}

// An action about code, behind the headline of something else, says where, and what was seen there.
TEST(Joined, AnActionBehindAnotherSaysItsPlace) {
  Results results;
  results.objects.findings = {
      finding("fragmented", .9, {"Node", "build at tree.cc:16", "", "", 0}, Gain::kLineUse)};
  Finding same = finding("same_load", .1, {"", "", "walk(Node*)", "tree.cc", 77});
  same.location = "walk tree.cc:77";
  same.message = "walk tree.cc:77: a load yields 5 in 99.0 % of its executions";
  same.action = "compute what depends on it once";
  results.values.findings = {same};
  JoinedResult joined = results.join();
  ASSERT_EQ(joined.findings.size(), 1u);
  EXPECT_EQ(joined.findings[0].finding.action,
            "put `key` and `next` first in `Node` (`assay fields apply Node FILES`); also, at walk "
            "tree.cc:77 (a load yields 5 in 99.0 % of its executions), compute what depends on it "
            "once");
  // What is to be done at several places is said once.
  results.values.findings.push_back(same);
  results.values.findings[1].about.line = 0;
  results.values.findings[1].about.function = "build(int)";
  results.values.findings[1].location = "build tree.cc:17";
  const std::string action = results.join().findings[0].finding.action;
  EXPECT_EQ(action.find("compute"), action.rfind("compute")) << action;
  results.values.findings.pop_back();
  // Alone it has said that in its headline.
  results.objects.findings.clear();
  joined = results.join();
  EXPECT_EQ(joined.findings[0].finding.action, same.action);
}

TEST(Joined, MembersThatAreHardlyAccessedAreNotPutFirst) {
  Results results;
  analyze::StructRow &row = results.fields.structs[0];
  row.members[1].accesses = 3; // `text`, which the advised order has on the way
  row.advice.layout.order = {1, 0, 2};
  EXPECT_EQ(row_of(results.join().types, "Node").first_members(),
            (std::vector<std::string>{"key", "next"}));
  row.members[1].accesses = 10;
  EXPECT_EQ(row_of(results.join().types, "Node").first_members(),
            (std::vector<std::string>{"text", "key", "next"}));
}

// What is said of a type as such stands with the site of its heaviest finding; its other sites stand alone.
TEST(Joined, SitesOfOneTypeAreTwoThings) {
  Results results;
  results.add_site("reserve(int)", 60, "struct Node", 1, 128000);
  results.heap.findings = {
      finding("many_small", .6, {"struct Node", "build at tree.cc:16", "", "", 0}),
      finding("untouched", .2, {"struct Node", "reserve at tree.cc:60", "", "", 0}, Gain::kMemory)};
  results.fields.findings = {finding("order", .5, {"Node", "", "", "", 0}, Gain::kLineUse)};
  const JoinedResult joined = results.join();
  ASSERT_EQ(joined.findings.size(), 2u);
  EXPECT_EQ(joined.findings[0].finding.rule, "many_small");
  EXPECT_EQ(joined.findings[0].parts.size(), 2u);
  EXPECT_EQ(joined.findings[1].finding.rule, "untouched");
  EXPECT_EQ(joined.findings[1].parts.size(), 1u);
}

TEST(Joined, WhatFitsInTheFirstCacheSavesLittle) {
  Results results;
  results.fields.findings = {finding("order", .8, {"Node", "", "", "", 0}, Gain::kLineUse)};
  const double before = results.join().findings[0].finding.weight;
  for (auto &snapshot : results.sets[0].snapshots)
    for (auto &owner : snapshot.owners)
      owner.lines /= 100;
  const JoinedResult joined = results.join();
  EXPECT_NEAR(joined.findings[0].finding.weight, .08, 1e-9);
  EXPECT_LT(joined.findings[0].finding.weight, before);
  EXPECT_NE(joined.findings[0].finding.evidence.find("which L1 holds"), std::string::npos);
}

TEST(Joined, AllocationsCountByTheirTime) {
  Results results;
  Finding churn = finding("churn", .9, {"Token", "parse at tree.cc:40", "", "", 0}, Gain::kCalls);
  churn.saves = {5000, "allocations"};
  results.heap.findings = {churn};
  EXPECT_NEAR(results.join().findings[0].finding.weight, 5000 * .1 / 1e6, 1e-12);
  results.heap.findings[0].saves.amount = 1e12;
  EXPECT_NEAR(results.join().findings[0].finding.weight, .9, 1e-9); // no more than its share
}

TEST(Joined, CodeBelongsToTheTypeThatItsLineAccesses) {
  Results results;
  results.objects.findings = {
      finding("fragmented", .4, {"Node", "build at tree.cc:16", "", "", 0}, Gain::kLineUse)};
  results.heap.findings = {
      finding("cold_bytes", .2, {"Token", "parse at tree.cc:40", "", "", 0}, Gain::kMemory)};
  results.values.findings = {
      finding("strided_load", .1, {"", "", "walk(Node*)", "tree.cc", 77}),  // a field of Node
      finding("same_load", .2, {"", "", "parse(char*)", "tree.cc", 41}),    // allocates Tokens
      finding("same_divisor", .3, {"", "", "elsewhere()", "tree.cc", 90})}; // alone
  const JoinedResult joined = results.join();
  ASSERT_EQ(joined.findings.size(), 3u);
  auto tools_of = [&](const std::string &type) {
    for (const auto &each : joined.findings)
      if (each.finding.about.type == type)
        return each.parts.size();
    return size_t{0};
  };
  EXPECT_EQ(tools_of("Node"), 2u);
  EXPECT_EQ(tools_of("Token"), 2u);
  EXPECT_EQ(tools_of(""), 1u);
  // Another line of that function is about nothing that is known of Node.
  results.values.findings[0].about.line = 78;
  EXPECT_EQ(results.join().findings.size(), 4u);
}

// One that joined_findings.cc has never heard of.
TEST(Joined, FindingsOfAnyToolTakePart) {
  Results results;
  Finding part_of_it = finding("anything", .3, {"struct Node", "", "", "", 0});
  part_of_it.saved_share = .1;
  const std::vector<Finding> findings = {part_of_it};
  const JoinedResult joined =
      analyze::join({&results.heap, nullptr, nullptr, nullptr, nullptr, {{"pages", findings}}}, {});
  ASSERT_EQ(joined.findings.size(), 1u);
  EXPECT_NEAR(joined.findings[0].finding.weight, .03, 1e-9);
  EXPECT_EQ(joined.findings[0].parts[0].tool, "pages");
}

// Where a tool's own filter did not keep them out.
TEST(Joined, FindingsAboutOtherThingsAreNotKept) {
  Results results;
  const std::vector<Finding> findings = {finding("one", .3, {"Node", "", "", "", 0}),
                                         finding("two", .3, {"Token", "", "", "", 0})};
  auto count = [&](bool is_filtered) {
    return analyze::join({&results.heap,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          {{"pages", findings, is_filtered}}},
                         {"", "Node"})
        .findings.size();
  };
  EXPECT_EQ(count(false), 1u);
  EXPECT_EQ(count(true), 2u);
}

TEST(Joined, AFilterKeepsWhatMatchesAsTheWholeRunHasIt) {
  Results whole, some;
  whole.heap.findings = {finding("one", .3, {"Node", "build at tree.cc:16", "", "", 0}),
                         finding("two", .2, {"Token", "parse at tree.cc:40", "", "", 0})};
  some.heap.findings = {finding("one", .9, {"Node", "build at tree.cc:16", "", "", 0})};
  some.heap.sites.pop_back(); // Token
  some.heap.sites[0].sums.all.alloc_count = 1;
  const JoinedResult matching = some.join();
  const JoinedResult all = whole.join();
  const JoinedResult kept =
      analyze::join({&whole.heap,
                     &whole.sets,
                     &whole.fields,
                     &whole.objects,
                     nullptr,
                     {{"heap", whole.heap.findings}, {"workingset", {}, false}}},
                    {"", "build", &matching});
  ASSERT_EQ(kept.findings.size(), 1u);
  EXPECT_EQ(kept.findings[0].finding.weight, all.findings[0].finding.weight);
  EXPECT_EQ(kept.types.size(), all.types.size() - 1);
  EXPECT_EQ(kept.filtered_types, 1u);
  EXPECT_EQ(kept.filtered_sites, 1u);
  EXPECT_EQ(row_of(kept.sites, "Node").heap->all.alloc_count, 1000u);
  const auto &owner = kept.phases[1].owners.front();
  ASSERT_TRUE(owner.row);
  EXPECT_EQ(kept.sites[*owner.row].type, "Node");
  EXPECT_FALSE(kept.nothing_matches());
}

// Of processes that ran one after the other, or side by side, calls are a share of the time of all.
TEST(Joined, WhatProcessesDoIsHeldAgainstTheTimeOfAll) {
  Results results;
  Finding churn = finding("churn", 1, {"Token", "parse at tree.cc:40", "", "", 0}, Gain::kCalls);
  churn.saves = {2e6, "allocations"};
  results.heap.findings = {churn};
  const double one = results.join().findings[0].finding.weight;
  results.heap.processes_us *= 2;
  EXPECT_DOUBLE_EQ(results.join().findings[0].finding.weight, one / 2);
}

TEST(Joined, FiltersMatchTypesAsTheCompilerWritesThemAndAsPeopleDo) {
  Results results;
  const std::vector<Finding> findings = {
      finding("one", .3, {"std::vector<int, std::allocator<int> >", "", "", "", 0})};
  for (const char *filter : {"^std::vector<int>$", "allocator<int> >$"})
    EXPECT_EQ(analyze::join(
                  {&results.heap, nullptr, nullptr, nullptr, nullptr, {{"pages", findings, false}}},
                  {"", filter})
                  .findings.size(),
              1u)
        << filter;
}

TEST(Joined, EachPartIsInOneItem) {
  Results results;
  for (int i = 0; i < 40; i++) {
    const std::string number = std::to_string(i % 7);
    results.heap.findings.push_back(finding(
        "rule" + std::to_string(i), .01 * i,
        {i % 3 ? "Type" + number : "char", "f at a.cc:" + std::to_string(i % 5), "", "", 0}));
  }
  size_t parts = 0;
  const JoinedResult joined = results.join();
  for (const auto &each : joined.findings)
    parts += each.parts.size();
  EXPECT_EQ(parts, 40u);
  for (size_t i = 1; i < joined.findings.size(); i++)
    EXPECT_LE(joined.findings[i].finding.weight, joined.findings[i - 1].finding.weight);
}

} // namespace
