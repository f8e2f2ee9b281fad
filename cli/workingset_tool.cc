// The working set in the commands that ask every tool (cli/tool.h). A profile may have one of
// several processes: conditions and differences are those of the first.

#include "abi/tools.h"
#include "analyze/workingset.h"
#include "analyze/workingset_diff.h"
#include "base/units.h"
#include "cli/tool.h"
#include "report/workingset.h"
#include "report/workingset_diff.h"

#include <fmt/format.h>

namespace cli {
namespace {

std::string count_of_snapshots(const profile::Profile &profile) {
  size_t snapshots = 0;
  for (const profile::Process &process : profile.processes)
    snapshots += process.workingset ? process.workingset->snapshots.size() : 0;
  return base::with_noun(snapshots, "snapshot");
}

// Of several processes the first counts, which is the program that was started.
class WorkingSetAnswer : public ToolAnswer {
public:
  explicit WorkingSetAnswer(std::vector<analyze::WorkingSetResult> results)
      : results_(std::move(results)) {}

  void put(report::Document &document) const override {
    // Snapshots, phases and caches are alternatives.
    document.put("workingset", report::workingset_document(first(), 0), "owners");
  }

  // How much is touched at a time depends, on a clock of time, on the machine.
  std::vector<std::string> growth(const ToolAnswer &older) const override {
    auto counts = [](uint32_t unit) {
      return unit == ASSAY_TIME_ACCESSES || unit == ASSAY_TIME_MARKS;
    };
    const analyze::WorkingSetResult &old = dynamic_cast<const WorkingSetAnswer &>(older).first();
    if (old.unit == first().unit && counts(old.unit))
      return {"workingset.mean_bytes", "workingset.largest_bytes", "workingset.total_bytes"};
    return {"workingset.total_bytes"};
  }

  ToolDiff diff(const ToolAnswer &newer) const override {
    const auto &other = dynamic_cast<const WorkingSetAnswer &>(newer);
    auto result = std::make_shared<analyze::WorkingSetDiff>(analyze::diff(first(), other.first()));
    if (results_.size() > 1 || other.results_.size() > 1)
      result->notes.push_back("of several processes, the first of each run are compared");
    return {result->same, [result](unsigned top) { return report::diff_json(*result, top); },
            [result](unsigned top, auto &style) { return report::diff_text(*result, top, style); }};
  }

  bool nothing_matches() const override { return first().nothing_matches(); }

  void put(analyze::ToolResults &results) const override {
    results.workingsets = &results_;
    uint64_t all = 0;
    for (const analyze::WorkingSetResult &result : results_)
      all += result.length();
    all = std::max<uint64_t>(all, 1);
    for (const analyze::WorkingSetResult &result : results_)
      results.findings.push_back(
          {"workingset", result.findings, false, double(result.length()) / double(all)});
  }

private:
  const analyze::WorkingSetResult &first() const { return results_.front(); }
  std::vector<analyze::WorkingSetResult> results_;
};

} // namespace

extern const Tool workingset_tool;
const Tool workingset_tool = {
    .name = "workingset",
    .bit = ASSAY_TOOL_workingset,
    .subject = "a working set",
    .summary =
        [](const profile::Profile &profile) {
          return count_of_snapshots(profile) + " of the working set";
        },
    .progress =
        [](const profile::Profile &profile, const AssayControl &) {
          return count_of_snapshots(profile) + " of the working set so far";
        },
    .has_key = [](const std::string &key) { return key == "workingset"; },
    .why_none = analyze::why_no_working_sets,
    .answer = [](const profile::Profile &profile, image::Symbols &symbols,
                 const ToolQuery &question) -> std::unique_ptr<ToolAnswer> {
      analyze::WorkingSetQuery query;
      query.filter = question.filter;
      query.wrappers = question.wrappers;
      query.caches = question.caches;
      auto results = analyze::workingsets(profile, symbols, query);
      if (results.empty())
        return nullptr;
      return std::make_unique<WorkingSetAnswer>(std::move(results));
    },
};

} // namespace cli
