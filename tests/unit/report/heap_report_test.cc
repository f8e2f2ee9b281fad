// Text and JSON of random profiles: well formed, within the width, with the documented keys, and
// the same sums in both.

#include "report/heap_report.h"

#include "tests/unit/profile/profile_builder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace {

analyze::HeapResult result_of(uint64_t seed) {
  profile::Profile p = profile_builder::random_profile(seed, 30);
  image::Symbols symbols = image::open(analyze::module_files(p));
  return analyze::heap(p, symbols, {});
}

analyze::HeapResult result_of_halves(uint64_t seed) {
  profile::Profile p = profile_builder::random_profile(seed, 30);
  for (profile::Process &process : p.processes)
    process.counters = ASSAY_COUNTERS_GLOBALS | ASSAY_COUNTERS_STACK;
  image::Symbols symbols = image::open(analyze::module_files(p));
  return analyze::heap(p, symbols, {});
}

TEST(HeapJson, HasTheDocumentedKeys) {
  auto json = nlohmann::json::parse(report::heap_json(result_of_halves(1), 0, ""));
  EXPECT_EQ(json["schema"], "assay.heap/1");
  for (const char *key : {"program", "machine", "unit", "losses", "coverage", "findings",
                          "contexts", "globals", "stacks", "timeline", "marks", "events", "totals"})
    EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_FALSE(json["contexts"].empty());
  for (const auto &context : json["contexts"]) {
    for (const char *key : {"id",
                            "stack",
                            "type",
                            "origin",
                            "alloc_count",
                            "reads",
                            "writes",
                            "touched_bytes",
                            "live_count",
                            "live_bytes",
                            "suppressed_bytes",
                            "peak_bytes",
                            "last_alloc_us",
                            "last_free_us",
                            "last_alloc_cpu",
                            "last_free_cpu",
                            "migrated_cpu",
                            "lifetime_overlaps",
                            "same_alloc_cpu",
                            "same_free_cpu",
                            "temporary_count",
                            "histograms",
                            "free_stacks"})
      EXPECT_TRUE(context.contains(key)) << key;
    for (const char *key : {"access_count", "size", "lifetime_us", "used_percent"})
      for (const char *part : {"total", "min", "max"})
        EXPECT_TRUE(context[key].contains(part)) << key << "." << part;
    if (context["alloc_count"] > 0)
      EXPECT_LE(context["used_percent"]["max"].get<double>(), 100.0);
    for (const auto &frame : context["stack"])
      for (const char *key : {"function", "linkage_name", "file", "line", "column",
                              "function_start_line", "module", "address", "inlined"})
        EXPECT_TRUE(frame.contains(key)) << key;
  }
}

TEST(HeapJson, ContextsSumToTotals) {
  auto json = nlohmann::json::parse(report::heap_json(result_of_halves(2), 0, ""));
  uint64_t objects = 0, reads = 0;
  for (const auto &context : json["contexts"]) {
    objects += context["alloc_count"].get<uint64_t>();
    reads += context["reads"].get<uint64_t>();
  }
  EXPECT_EQ(objects, json["totals"]["alloc_count"]);
  EXPECT_EQ(reads, json["totals"]["reads"]);
}

TEST(HeapJson, WithoutTwoCountersThereAreAccessesOnly) {
  analyze::HeapResult result = result_of_halves(4);
  ASSERT_FALSE(result.globals.empty());
  ASSERT_FALSE(result.stacks.empty());
  auto apart = nlohmann::json::parse(report::heap_json(result, 0, ""));
  EXPECT_TRUE(apart["coverage"]["reads_and_writes_apart"]);
  EXPECT_TRUE(apart["globals"][0].contains("reads"));
  EXPECT_EQ(apart["unit"].get<std::string>().find("not told apart"), std::string::npos);
  result.reads_apart = false;
  auto joined = nlohmann::json::parse(report::heap_json(result, 0, ""));
  EXPECT_NE(joined["unit"].get<std::string>().find("not told apart"), std::string::npos);
  EXPECT_EQ(joined.dump().find("\"reads\""), std::string::npos);
  EXPECT_EQ(joined.dump().find("\"writes\""), std::string::npos);
  EXPECT_EQ(joined["totals"]["access_count"], apart["totals"]["access_count"]);
  EXPECT_EQ(joined["globals"][0]["accesses"], apart["globals"][0]["accesses"]);
  std::string text = report::heap_text(result, {}, report::Style());
  EXPECT_EQ(text.find("stores"), std::string::npos);
  EXPECT_NE(text.find("accesses;"), std::string::npos);
}

// One object of 260 that the scheduler moved, and some calls of realloc, are no answer to anything.
TEST(HeapText, QuestionsAreNotAnsweredWithNoise) {
  analyze::HeapResult result = result_of_halves(4);
  result.run_us = 3'000'000;
  for (analyze::HeapSums *sums : {&result.totals, &result.sites.at(0).sums}) {
    sums->all.alloc_count = 260;
    sums->all.migrated_cpu = 1;
    sums->all.realloc_count = 12;
    sums->all.realloc_moved_bytes = 1 << 20;
  }
  std::string text = report::heap_text(result, {}, report::Style());
  EXPECT_EQ(text.find("another cpu"), std::string::npos);
  EXPECT_EQ(text.find("realloc?"), std::string::npos);
  report::HeapTextOptions asked;
  asked.sort = "migrated";
  EXPECT_NE(report::heap_text(result, asked, report::Style()).find("another cpu"),
            std::string::npos);
  result.totals.all.migrated_cpu = 60'000;
  result.totals.all.realloc_moved_bytes = 30 << 20;
  text = report::heap_text(result, {}, report::Style());
  EXPECT_NE(text.find("another cpu"), std::string::npos);
  EXPECT_NE(text.find("realloc?"), std::string::npos);
}

TEST(HeapText, OfAKilledRunNobodyKnowsHowModulesWereBuilt) {
  analyze::HeapResult result = result_of_halves(4);
  result.modules_instrumented = 0;
  result.losses = {};
  EXPECT_NE(report::heap_text(result, {}, report::Style()).find("no module was built with"),
            std::string::npos);
  result.losses[ASSAY_LOSS_killed] = 1;
  std::string text = report::heap_text(result, {}, report::Style());
  EXPECT_EQ(text.find("no module was built with"), std::string::npos);
  EXPECT_NE(text.find("the profile ends before it says which modules"), std::string::npos);
}

TEST(HeapText, StrippedModulesAreNamed) {
  analyze::HeapResult result = result_of_halves(4);
  result.nameless_modules = {"/bin/app", "/lib/libx.so"};
  EXPECT_NE(report::heap_text(result, {}, report::Style())
                .find("  2 modules have no symbols (app, libx.so), so their functions are"),
            std::string::npos);
}

TEST(HeapText, GlobalsAndStacksAreShownWhereRecorded) {
  analyze::HeapResult result = result_of_halves(4);
  std::string text = report::heap_text(result, {}, report::Style());
  EXPECT_NE(text.find("Which globals are used most?"), std::string::npos);
  EXPECT_NE(text.find("How is the stack used, by thread?"), std::string::npos);
  EXPECT_NE(text.find("data of module"), std::string::npos);
  result.globals.clear();
  result.stacks.clear();
  text = report::heap_text(result, {}, report::Style());
  EXPECT_EQ(text.find("globals"), std::string::npos);
  EXPECT_EQ(text.find("stack used"), std::string::npos);
}

// One process of 60 ms: a slot of the curve is one of them.
analyze::HeapResult result_of_60_ms() {
  profile::Assembler assembler;
  auto stack = assembler.stack({{{assembler.module("/bin/app", {1}, true), 0x10}}, false});
  profile::heap_context(assembler, stack, {}, {ASSAY_ORIGIN_POOL, "nodes"}).peak_bytes = 1;
  profile::Process process;
  process.executable = "/bin/app";
  for (uint64_t ms = 0; ms <= 60; ms += 10)
    process.timeline.push_back({ms * 1000, 1, ms, ms});
  process.marks = {{5000, "load"}, {30000, "serve"}, {30500, "stop"}};
  process.ends.push_back({ASSAY_END_EXIT, 0, 60000});
  assembler.profile().processes.push_back(process);
  assembler.add(profile::Event{stack, "request", 4, 100});
  assembler.add(profile::Event{stack, "miss", 2, 2});
  profile::Profile p = assembler.finish();
  image::Symbols symbols = image::open(analyze::module_files(p));
  return analyze::heap(p, symbols, {});
}

TEST(HeapText, MarksStandUnderTheirTime) {
  analyze::HeapResult result = result_of_60_ms();
  std::string text = report::heap_text(result, {}, report::Style());
  std::istringstream lines(text);
  std::string curve, places, names;
  while (std::getline(lines, curve) && curve.find("live bytes over time") == std::string::npos)
    ;
  std::getline(lines, places);
  std::getline(lines, names);
  EXPECT_EQ(names, "  marks: a load at 5.00 ms, b serve at 30.0 ms, c stop at 30.5 ms");
  unsigned start = report::columns_of(curve) - 60;
  ASSERT_EQ(places.size(), start + 31);
  EXPECT_EQ(places.find('a'), start + 5);
  EXPECT_EQ(places.find('b'), start + 30); // and c, at the same place

  result.processes[0].timeline.clear();
  text = report::heap_text(result, {}, report::Style());
  EXPECT_NE(text.find("  marks: load at 5.00 ms, serve at"), std::string::npos) << text;
  auto json = nlohmann::json::parse(report::heap_json(result, 0, ""));
  EXPECT_EQ(json["marks"][1]["name"], "serve");
  EXPECT_EQ(json["marks"][1]["time_us"], 30000);
}

TEST(HeapText, TheCurveBeginsAtTheReset) {
  analyze::HeapResult result = result_of_60_ms();
  result.processes[0].reset_us = 30000;
  std::string text = report::heap_text(result, {}, report::Style());
  EXPECT_NE(text.find("counted from 30.0 ms on, where the program began anew (assay_reset)"),
            std::string::npos)
      << text;
  auto json = nlohmann::json::parse(report::heap_json(result, 0, ""));
  EXPECT_EQ(json["processes"][0]["reset_us"], 30000);
}

TEST(HeapText, EventsAreRankedByWeight) {
  analyze::HeapResult result = result_of_60_ms();
  std::string text = report::heap_text(result, {}, report::Style());
  size_t heading = text.find("What did the program report of itself?");
  ASSERT_NE(heading, std::string::npos);
  EXPECT_LT(text.find("request", heading), text.find("miss", heading));
  auto json = nlohmann::json::parse(report::heap_json(result, 0, ""));
  EXPECT_EQ(json["events"][1]["name"], "request");
  EXPECT_EQ(json["events"][1]["weight"], 100);
  EXPECT_EQ(json["events"][1]["stack"].size(), 1u);
}

TEST(HeapText, OriginsAreNamedWhereTheyAreNotMalloc) {
  profile::Profile p = profile_builder::random_profile(4, 30);
  image::Symbols symbols = image::open(analyze::module_files(p));
  auto result = analyze::heap(p, symbols, {});
  report::HeapTextOptions options;
  options.sort = "bytes";
  options.top = 100;
  std::string text = report::heap_text(result, options, report::Style());
  EXPECT_NE(text.find("(pool nodes)"), std::string::npos);
  EXPECT_NE(text.find("(mmap)"), std::string::npos);
  EXPECT_EQ(text.find("(malloc)"), std::string::npos);
  auto pool = analyze::heap(p, symbols, {"^pool nodes$", {}, {}});
  ASSERT_FALSE(pool.contexts.empty());
  for (const auto &row : pool.contexts)
    EXPECT_EQ(row.origin, "pool nodes");
}

TEST(HeapText, FreesStandUnderTheStack) {
  analyze::HeapResult result = result_of_halves(1);
  for (auto &site : result.sites) {
    analyze::Frame free;
    free.function = "list_free";
    analyze::FreeSite place = {{free}, 0, 3, 48};
    site.freed_at.assign(5, place);
  }
  std::string text = report::heap_text(result, {}, report::Style());
  EXPECT_NE(text.find("      freed at list_free: 3 objects, 48 B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("      … freed at 2 more places\n"), std::string::npos);
}

TEST(HeapJson, TopAndSortLimitTheContexts) {
  auto json = nlohmann::json::parse(report::heap_json(result_of(2), 3, "bytes"));
  ASSERT_EQ(json["contexts"].size(), 3u);
  EXPECT_GE(json["contexts"][0]["size"]["total"], json["contexts"][1]["size"]["total"]);
}

TEST(HeapJson, NamesThatAreNotUtf8AreReplaced) {
  analyze::HeapResult result = result_of(1);
  result.contexts.at(0).type = "\xff\xfe bad";
  EXPECT_NO_THROW(static_cast<void>(nlohmann::json::parse(report::heap_json(result, 0, ""))));
}

TEST(HeapText, FitsTheWidthAndIsPrintable) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    report::HeapTextOptions options;
    std::istringstream lines(report::heap_text(result_of(seed), options, report::Style()));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(report::printable(line), line);
      if (line.find("#") != std::string::npos)
        EXPECT_LE(report::columns_of(line), 100u) << line;
    }
  }
}

TEST(HeapText, OneTableWhenSorted) {
  report::HeapTextOptions options;
  options.sort = "bytes";
  options.stacks = false;
  std::string text = report::heap_text(result_of(1), options, report::Style());
  EXPECT_NE(text.find("Who asks for the most bytes?"), std::string::npos);
  EXPECT_EQ(text.find("Which allocations are hot?"), std::string::npos);
}

} // namespace
