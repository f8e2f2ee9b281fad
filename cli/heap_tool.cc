// The heap in the commands that ask every tool (cli/tool.h).
//
// The heap is the default tool, so its document is the frame into which the others put their keys;
// and it always has an answer. What may grow is what a program asks for, not times. Accesses are
// compared only if both runs counted them, and loads and stores apart only if both tell them apart.
// For a diff the contexts are left out.

#include "abi/tools.h"
#include "analyze/heap.h"
#include "analyze/heap_diff.h"
#include "base/units.h"
#include "cli/tool.h"
#include "report/heap_diff.h"
#include "report/heap_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace cli {
namespace {

std::string summary(const profile::Profile &profile) {
  analyze::HeapSums totals = analyze::heap_totals(profile);
  std::string text =
      fmt::format("{} of {}", base::format_counted(double(totals.all.alloc_count), "allocation"),
                  base::format_bytes(double(totals.all.size_total)));
  if (analyze::counts_accesses(profile))
    text += ", " + base::format_counted(double(totals.accesses()), "access", "accesses");
  return text + ", " +
         report::peak_text(analyze::peak_live_bytes(profile), profile.processes.size());
}

std::string progress(const profile::Profile &, const AssayControl &now) {
  return fmt::format(
      "{} so far, {} live, peak {}", base::format_counted(double(now.allocations), "allocation"),
      base::format_bytes(double(now.live_bytes)), base::format_bytes(double(now.peak_bytes)));
}

class HeapAnswer : public ToolAnswer {
public:
  explicit HeapAnswer(analyze::HeapResult result) : result_(std::move(result)) {}

  void put(report::Document &document) const override {
    document = report::heap_document(result_, 0, "");
  }

  // Amounts that a program asks for, not times. Loads and stores apart, if both reports tell them apart.
  std::vector<std::string> growth(const ToolAnswer &older) const override {
    std::vector<std::string> paths = {"totals.alloc_count", "totals.size.total",
                                      "totals.peak_bytes", "totals.live_bytes"};
    const analyze::HeapResult &before = dynamic_cast<const HeapAnswer &>(older).result_;
    if (!result_.accesses_measured() || !before.accesses_measured())
      return paths; // none against some is no growth
    if (result_.reads_apart && before.reads_apart)
      paths.insert(paths.end(), {"totals.reads", "totals.writes"});
    else
      paths.push_back("totals.access_count.total");
    return paths;
  }

  const char *only_in(const ToolAnswer &older) const override {
    const analyze::HeapResult &before = dynamic_cast<const HeapAnswer &>(older).result_;
    return before.accesses_measured() && !result_.accesses_measured() ? "accesses" : nullptr;
  }

  ToolDiff diff(const ToolAnswer &newer) const override {
    auto result = std::make_shared<const analyze::HeapDiff>(
        analyze::diff(result_, dynamic_cast<const HeapAnswer &>(newer).result_));
    return {result->same, [result](unsigned top) { return report::diff_json(*result, top); },
            [result](unsigned top, auto &style) { return report::diff_text(*result, top, style); }};
  }

  bool nothing_matches() const override { return result_.nothing_matches(); }

  void put(analyze::ToolResults &results) const override {
    results.heap = &result_;
    results.findings.push_back({"heap", result_.findings});
  }

private:
  analyze::HeapResult result_;
};

bool has_key(const std::string &key) {
  constexpr const char *kKeys[] = {"totals",  "contexts", "sites",    "types",
                                   "modules", "findings", "coverage", "globals",
                                   "stacks",  "timeline", "events"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

} // namespace

extern const Tool heap_tool;
const Tool heap_tool = {
    .name = "heap",
    .bit = ASSAY_TOOL_heap,
    .subject = "a heap",
    .summary = summary,
    .progress = progress,
    .has_key = has_key,
    .why_none = analyze::why_no_heap,
    .answer = [](const profile::Profile &profile, image::Symbols &symbols,
                 const ToolQuery &query) -> std::unique_ptr<ToolAnswer> {
      analyze::HeapResult result =
          analyze::heap(profile, symbols, {query.filter, {}, query.wrappers});
      if (query.for_diff)
        result.contexts = {};
      return std::make_unique<HeapAnswer>(std::move(result));
    },
};

} // namespace cli
