// Sampled values in the commands that ask every tool (cli/tool.h).
//
// Samples are taken by chance, so nothing of them is checked for growth; a diff compares their
// intervals (analyze/values_diff.cc). A profile without samples has no answer.

#include "abi/tools.h"
#include "analyze/values.h"
#include "base/units.h"
#include "cli/tool.h"
#include "report/values_diff.h"
#include "report/values_report.h"

#include <fmt/format.h>

namespace cli {
namespace {

std::string count_of_samples(const profile::Profile &profile) {
  return fmt::format("{}, values at {}",
                     base::format_counted(double(profile.values.samples), "sample"),
                     base::format_counted(double(profile.values.values.size()), "place"));
}

class ValuesAnswer : public ToolAnswer {
public:
  explicit ValuesAnswer(analyze::ValuesResult result) : result_(std::move(result)) {}

  void put(report::Document &document) const override {
    document.put("values", report::values_json(result_, 0));
  }
  // Samples are taken by chance: nothing of them must stay as it is.
  std::vector<std::string> growth(const ToolAnswer &) const override { return {}; }
  ToolDiff diff(const ToolAnswer &newer) const override {
    const auto &other = dynamic_cast<const ValuesAnswer &>(newer).result_;
    const analyze::ValuesDiff diff = analyze::diff(result_, other);
    return {diff.same(), [=](unsigned top) { return report::values_diff_json(diff, top); },
            [=](unsigned top, const report::Style &style) {
              return report::values_diff_text(diff, top, style);
            }};
  }

  void put(analyze::ToolResults &results) const override {
    results.values = &result_;
    results.findings.push_back({"values", result_.findings, false});
  }

private:
  analyze::ValuesResult result_;
};

} // namespace

extern const Tool values_tool;
const Tool values_tool = {
    .name = "values",
    .bit = ASSAY_TOOL_values,
    .subject = "values",
    .summary = count_of_samples,
    .progress = [](const profile::Profile &profile,
                   const AssayControl &) { return count_of_samples(profile) + " so far"; },
    .has_key = [](const std::string &key) { return key == "values"; },
    .why_none = analyze::why_no_values,
    .answer = [](const profile::Profile &profile, image::Symbols &symbols,
                 const ToolQuery &) -> std::unique_ptr<ToolAnswer> {
      if (!analyze::measures_values(profile))
        return nullptr;
      return std::make_unique<ValuesAnswer>(analyze::values(profile, symbols, {}));
    },
};

} // namespace cli
