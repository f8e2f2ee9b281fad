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

TEST(HeapJson, HasTheDocumentedKeys) {
  auto json = nlohmann::json::parse(report::heap_json(result_of(1), 0, ""));
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
  auto json = nlohmann::json::parse(report::heap_json(result_of(2), 0, ""));
  uint64_t objects = 0, reads = 0;
  for (const auto &context : json["contexts"]) {
    objects += context["alloc_count"].get<uint64_t>();
    reads += context["reads"].get<uint64_t>();
  }
  EXPECT_EQ(objects, json["totals"]["alloc_count"]);
  EXPECT_EQ(reads, json["totals"]["reads"]);
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
