// Fields in the commands that ask every tool (cli/tool.h).
//
// What may grow is the accesses of a struct that both runs have. It is named by its name if just
// one struct of each run has that name and a path can hold it; else by its layout's id, if both
// have that layout.

#include "abi/tools.h"
#include "analyze/fields.h"
#include "analyze/fields_diff.h"
#include "base/units.h"
#include "cli/tool.h"
#include "report/fields.h"
#include "report/fields_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace cli {
namespace {

std::string summary(const profile::Profile &profile) {
  uint64_t accesses = 0;
  std::set<profile::RecordId> used;
  for (const profile::FieldUse &use : profile.fields.uses)
    if (const uint64_t count = use.reads + use.writes; count && use.record.known()) {
      accesses += count * (use.more + uint64_t{1}); // to each field, as the report has it
      used.insert(use.record);
    }
  return fmt::format("{} to fields of {}",
                     base::format_counted(double(accesses), "access", "accesses"),
                     base::with_noun(used.size(), "struct"));
}

class FieldsAnswer : public ToolAnswer {
public:
  explicit FieldsAnswer(analyze::FieldsResult result) : result_(std::move(result)) {}

  void put(report::Document &document) const override {
    report::Json json = report::fields_document(result_, 0);
    document.put("structs", json["structs"], "structs");
    document.put("attributed_share", json["attributed_share"]);
    document.put("fields", std::move(json), "structs");
  }

  // More accesses of a struct that both have are more work.
  std::vector<std::string> growth(const ToolAnswer &older) const override {
    const auto &old = dynamic_cast<const FieldsAnswer &>(older);
    std::vector<std::string> paths;
    for (const analyze::StructRow &row : result_.structs)
      if (count_of_name(row) == 1 && old.count_of_name(row) == 1)
        paths.push_back(fmt::format("structs[{}].accesses", row.record.name));
      else if (old.has_layout(row))
        paths.push_back(fmt::format("structs[{:016x}].accesses", row.record.hash));
    return paths;
  }

  ToolDiff diff(const ToolAnswer &newer) const override {
    auto result = std::make_shared<const analyze::FieldsDiff>(
        analyze::diff(result_, dynamic_cast<const FieldsAnswer &>(newer).result_));
    return {result->same, [result](unsigned top) { return report::diff_json(*result, top); },
            [result](unsigned top, auto &style) { return report::diff_text(*result, top, style); }};
  }

  bool nothing_matches() const override {
    return !result_.filter.empty() && result_.filtered && result_.structs.empty();
  }

  void put(analyze::ToolResults &results) const override {
    results.fields = &result_;
    results.findings.push_back({"fields", result_.findings});
  }

private:
  // How many have its name; 0 if a path cannot hold that.
  long count_of_name(const analyze::StructRow &row) const {
    const std::string &name = row.record.name;
    if (name.find_first_of("[]=~") != std::string::npos)
      return 0;
    return std::count_if(result_.structs.begin(), result_.structs.end(),
                         [&](auto &each) { return each.record.name == name; });
  }
  bool has_layout(const analyze::StructRow &row) const {
    return std::any_of(result_.structs.begin(), result_.structs.end(),
                       [&](auto &each) { return each.record.hash == row.record.hash; });
  }

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
    .has_key =
        [](const std::string &key) {
          return key == "structs" || key == "attributed_share" || key == "fields";
        },
    .why_none = analyze::why_no_fields,
    .answer = [](const profile::Profile &profile, image::Symbols &,
                 const ToolQuery &query) -> std::unique_ptr<ToolAnswer> {
      if (!analyze::has_fields(profile))
        return nullptr;
      return std::make_unique<FieldsAnswer>(analyze::fields(profile, {"", query.filter, 0}));
    },
};

} // namespace cli
