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
                          "contexts", "globals", "timeline", "totals"})
    EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_FALSE(json["contexts"].empty());
  for (const auto &context : json["contexts"]) {
    for (const char *key : {"id",
                            "stack",
                            "type",
                            "alloc_count",
                            "reads",
                            "writes",
                            "touched_bytes",
                            "live_count",
                            "live_bytes",
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
