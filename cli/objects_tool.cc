// The words of objects in the commands that ask every tool (cli/tool.h).
//
// Only the lines that were used may be checked for growth: hotness is another in each run. A
// profile without words of objects has no answer.

#include "abi/tools.h"
#include "analyze/objects.h"
#include "analyze/objects_diff.h"
#include "base/units.h"
#include "cli/tool.h"
#include "report/objects_diff.h"
#include "report/objects_report.h"

#include <fmt/format.h>

namespace cli {
namespace {

std::string count_of_objects(const profile::Profile &profile) {
  uint64_t objects = 0;
  for (const profile::ObjectGroup &group : profile.object_groups)
    objects += group.sums.count;
  return "the words of " + base::format_counted(double(objects), "object");
}

class ObjectsAnswer : public ToolAnswer {
public:
  explicit ObjectsAnswer(analyze::ObjectsResult result) : result_(std::move(result)) {}

  void put(report::Document &document) const override {
    document.put("objects", report::objects_json(result_, 0), "groups");
  }

  // Hotness is another in each run, the lines that were used are not.
  std::vector<std::string> growth(const ToolAnswer &) const override {
    return {"objects.totals.lines_used"};
  }

  ToolDiff diff(const ToolAnswer &newer) const override {
    auto result = std::make_shared<const analyze::ObjectsDiff>(
        analyze::diff(result_, dynamic_cast<const ObjectsAnswer &>(newer).result_));
    return {result->same, [result](unsigned top) { return report::diff_json(*result, top); },
            [result](unsigned top, auto &style) { return report::diff_text(*result, top, style); }};
  }

  bool nothing_matches() const override { return result_.nothing_matches(); }

  void put(analyze::ToolResults &results) const override {
    results.objects = &result_;
    results.findings.push_back({"objects", result_.findings});
  }

private:
  analyze::ObjectsResult result_;
};

} // namespace

extern const Tool objects_tool;
const Tool objects_tool = {
    .name = "objects",
    .bit = ASSAY_TOOL_objects,
    .subject = "words of objects",
    .summary = count_of_objects,
    .progress = [](const profile::Profile &profile,
                   const AssayControl &) { return count_of_objects(profile) + " so far"; },
    .has_key = [](const std::string &key) { return key == "objects"; },
    .why_none = analyze::why_no_objects,
    .answer = [](const profile::Profile &profile, image::Symbols &symbols,
                 const ToolQuery &query) -> std::unique_ptr<ToolAnswer> {
      if (!analyze::measures_objects(profile))
        return nullptr;
      return std::make_unique<ObjectsAnswer>(
          analyze::objects(profile, symbols, {query.filter, "", query.wrappers}));
    },
};

} // namespace cli
