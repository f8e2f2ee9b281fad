// The document assay.report/1.
//
// What a tool did not record is null, never zero: a program that reads the document can tell "no
// accesses" from "not counted".

#include "report/joined_report.h"

namespace report {
namespace {

using analyze::JoinedPhase;
using analyze::JoinedResult;
using analyze::JoinedRow;

template <class T> Json or_null(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string &text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json finding_json(const analyze::JoinedFinding &each) {
  Json json = findings_json({each.finding}).front();
  const analyze::Subject &about = each.finding.about;
  json["tools"] = each.tools();
  json["type"] = or_null(about.type);
  json["site"] = or_null(about.site);
  json["function"] = or_null(about.function);
  json["facts"] = Json::array();
  for (const analyze::ToolFact &fact : each.facts)
    json["facts"].push_back({{"tool", fact.tool}, {"text", fact.text}});
  json["parts"] = Json::array();
  for (const auto &part : each.parts) {
    Json own = findings_json({part.finding}).front();
    own["tool"] = part.tool;
    own["counts_share"] = part.weight;
    json["parts"].push_back(std::move(own));
  }
  return json;
}

Json advice_json(const JoinedRow &row) {
  if (!row.fields)
    return nullptr;
  const analyze::LayoutAdvice &advice = row.fields->advice;
  Json order = Json::array();
  for (size_t i : advice.layout.order)
    order.push_back(row.fields->members[i].name);
  return {{"worth_it", advice.is_worth_it},
          {"first", row.first_members()},
          {"order", order},
          {"lines_before", advice.lines_before},
          {"lines_after", advice.lines_after},
          {"size_before", advice.size_before},
          {"size_after", advice.size_after},
          {"sequential", advice.is_sweep}};
}

Json row_json(const JoinedResult &result, const JoinedRow &row, bool is_site) {
  Json json;
  if (is_site) {
    json["kind"] = row.kind;
    json["name"] = row.site;
    json["type"] = or_null(row.type);
  } else {
    json["name"] = or_null(row.type);
    json["size"] = row.fields ? Json(row.fields->record.size) : Json(nullptr);
    json["file"] = row.fields ? Json(row.fields->record.file) : Json(nullptr);
    json["line"] = row.fields ? Json(row.fields->record.line) : Json(nullptr);
  }
  const analyze::HeapSums *heap = row.heap ? &*row.heap : nullptr;
  auto of_heap = [&](auto value) { return heap ? Json(value(*heap)) : Json(nullptr); };
  json["alloc_count"] = of_heap([](auto &sums) { return sums.all.alloc_count; });
  json["size_bytes"] = of_heap([](auto &sums) { return sums.all.size_total; });
  json["live_bytes"] = of_heap([](auto &sums) { return sums.live.size_total; });
  auto of_peak = [&](auto value) {
    return heap && result.from.heap->peak_is_divided ? Json(value(*heap)) : Json(nullptr);
  };
  json["peak_bytes"] = of_peak([](auto &sums) { return sums.peak_bytes; });
  json["at_peak_bytes"] = of_peak([](auto &sums) { return sums.at_peak_bytes; });
  json["mean_lifetime_us"] = of_heap([](auto &sums) { return sums.mean_lifetime_us(); });
  json["accesses"] = row.has_accesses() ? Json(heap->accesses()) : Json(nullptr);
  json["field_accesses"] = row.fields ? Json(row.fields->accesses()) : Json(nullptr);
  json["set"] = nullptr;
  if (row.set)
    json["set"] = {{"most_lines", row.set->most_lines},
                   {"most_bytes", row.set->most_lines * result.line_bytes},
                   {"mean_lines", row.set->mean_lines},
                   {"time_share", row.set->time_share},
                   {"phase", result.phases[row.set->phase].number},
                   {"pid", result.phases[row.set->phase].set->process.pid},
                   {"phase_lines", row.set->phase_lines}};
  json["used_share"] = or_null(row.used_share());
  json["used_by"] = or_null(std::string(row.used_by()));
  json["advice"] = advice_json(row);
  json["false_sharing"] = row.fields ? Json(row.false_sharing) : Json(nullptr);
  return json;
}

Json phase_json(const JoinedResult &result, const JoinedPhase &phase, unsigned top) {
  const analyze::WorkingSetResult &set = *phase.set;
  const analyze::Phase &lines = *phase.phase;
  Json json = {
      {"pid", set.process.pid},
      {"phase", phase.number},
      {"begin", set.snapshots[lines.first].when.begin},
      {"end", set.snapshots[lines.last].when.end},
      {"time_share", phase.time_share()},
      {"function", lines.functions.empty() ? Json(nullptr) : Json(lines.functions.front().first)},
      {"lines", lines.lines},
      {"bytes", set.bytes(lines.lines)},
      {"mean_lines", lines.mean_lines},
      {"mean_bytes", set.bytes(lines.mean_lines)},
      {"most_lines", lines.most_lines},
      {"fits_in", or_null(phase.fits)},
      {"owners", Json::array()}};
  for (const analyze::PhaseOwner &owner : phase.owners) {
    if (top && json["owners"].size() == top)
      break;
    const JoinedRow *row = owner.row ? &result.sites[*owner.row] : nullptr;
    Json own = owner_json(*owner.owner);
    own["lines"] = owner.lines;
    own["bytes"] = set.bytes(owner.lines);
    own["lines_share"] = lines.mean_lines ? double(owner.lines) / double(lines.mean_lines) : 0;
    own["used_share"] = row ? or_null(row->used_share()) : Json(nullptr);
    own["used_by"] = row ? or_null(std::string(row->used_by())) : Json(nullptr);
    own["accesses"] = row && row->has_accesses() ? Json(row->heap->accesses()) : Json(nullptr);
    own["first"] = row ? row->first_members() : std::vector<std::string>();
    json["owners"].push_back(std::move(own));
  }
  return json;
}

Json coverage_json(const JoinedResult &result) {
  const analyze::HeapResult *heap = result.from.heap;
  const analyze::FieldsResult *fields = result.from.fields;
  return {{"accesses_counted", heap ? Json(heap->accesses_counted) : Json(nullptr)},
          {"counted_bytes_share", heap ? Json(heap->counted_bytes_share) : Json(nullptr)},
          {"attributed_share", fields ? Json(fields->attributed_share) : Json(nullptr)},
          {"types_filtered_out", result.filtered_types},
          {"sites_filtered_out", result.filtered_sites}};
}

} // namespace

Document joined_document(const JoinedResult &result, unsigned top) {
  Document document;
  document.put("schema", "assay.report/1");
  document.put("program", program_json(result.process, result.program_build_id));
  document.put("machine", machine_json(result.process));
  document.put("unit", "of rows, what the tool that they come from counts; of findings, a share of "
                       "the run that they could save");
  Json tools = Json::array();
  for (const analyze::ToolState &tool : result.tools)
    tools.push_back(
        {{"name", tool.name},
         {"recorded", tool.recorded},
         {"command", tool.recorded ? Json(nullptr) : Json(recording_command(result, tool))}});
  document.put("tools", std::move(tools));
  document.put("line_size", result.line_bytes);
  document.put("time_unit", result.phases.empty()
                                ? Json(nullptr)
                                : Json(time_unit_name(result.phases.front().set->unit)));
  document.put("losses", losses_json(result.losses));
  document.put("notes", result.notes);
  document.put("coverage", coverage_json(result));
  document.list("findings", result.findings.size(),
                [&result](size_t i) { return finding_json(result.findings[i]); });
  document.list("phases", result.phases.size(),
                [&result, top](size_t i) { return phase_json(result, result.phases[i], top); });
  document.list("types", shown(result.types.size(), top),
                [&result](size_t i) { return row_json(result, result.types[i], false); });
  document.list("sites", shown(result.sites.size(), top),
                [&result](size_t i) { return row_json(result, result.sites[i], true); });
  return document;
}

} // namespace report
