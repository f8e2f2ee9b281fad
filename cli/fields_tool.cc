// Fields in the commands that ask every tool (cli/tool.h).

#include "abi/tools.h"
#include "analyze/fields.h"
#include "analyze/fields_diff.h"
#include "base/units.h"
#include "cli/tool.h"
#include "report/fields.h"
#include "report/fields_diff.h"

#include <fmt/format.h>

namespace cli {
namespace {

std::string summary(const profile::Profile &profile) {
  uint64_t accesses = 0;
  for (const profile::FieldUse &use : profile.fields.uses)
    accesses += use.reads + use.writes;
  return fmt::format("{} accesses to fields of {} structs", base::format_count(double(accesses)),
                     profile.fields.records.size());
}

class FieldsAnswer : public ToolAnswer {
public:
  explicit FieldsAnswer(analyze::FieldsResult result) : result_(std::move(result)) {}

  void put(report::Document &document) const override {
    report::Json json = report::fields_document(result_, 0);
    document.put("structs", json["structs"], "structs");
    document.put("attributed_share", json["attributed_share"]);
  }

  // More accesses of a known struct are more work.
  std::vector<std::string> growth(const ToolAnswer &) const override {
    return {"structs.accesses"};
  }

  ToolDiff diff(const ToolAnswer &newer) const override {
    auto result = std::make_shared<const analyze::FieldsDiff>(
        analyze::diff(result_, dynamic_cast<const FieldsAnswer &>(newer).result_));
    return {result->same, [result](unsigned top) { return report::diff_json(*result, top); },
            [result](unsigned top, auto &style) { return report::diff_text(*result, top, style); }};
  }

  void put(analyze::ToolResults &results) const override { results.fields = &result_; }

private:
  analyze::FieldsResult result_;
};

} // namespace

extern const Tool fields_tool;
const Tool fields_tool = {
    .name = "fields",
    .bit = ASSAY_TOOL_fields,
    .subject = "fields",
    .summary = summary,
    .progress = [](const profile::Profile &profile,
                   const AssayControl &) { return summary(profile) + " so far"; },
    .has_key = [](const std::string &key) { return key == "structs" || key == "attributed_share"; },
    .why_none = analyze::why_no_fields,
    .answer = [](const profile::Profile &profile, image::Symbols &,
                 const ToolQuery &query) -> std::unique_ptr<ToolAnswer> {
      if (!analyze::has_fields(profile))
        return nullptr;
      return std::make_unique<FieldsAnswer>(analyze::fields(profile, {"", query.filter, 0}));
    },
};

} // namespace cli
