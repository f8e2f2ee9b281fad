// The document assay.objects/1.
//
// What a count of hotness means depends on the mode of the recording, so the document says it in
// words (`unit`). Type and module are null where they are not known. The document as a whole makes
// its groups while it is written; as a part of another document they are made at once
// (objects_json()).

#include "report/objects_report.h"

#include "abi/sites.h"

namespace report {
namespace {

using analyze::ObjectRow;
using analyze::ObjectsResult;
using analyze::ObjectWord;

std::string unit_of(uint32_t mode) {
  if (mode & ASSAY_WORDS_COUNTERS)
    return "one executed load or store that reaches a word of 4 bytes";
  if (mode & ASSAY_WORDS_BITS)
    return "one byte of an object that was accessed";
  if (mode & ASSAY_WORDS_LOCALITY)
    return "one of the last eight samples in which a word of 4 bytes was accessed";
  return "one sample in which a word of 4 bytes was accessed";
}

Json words_json(const std::vector<ObjectWord> &words, bool with_again) {
  Json list = Json::array();
  for (const ObjectWord &word : words) {
    Json json = {{"offset", word.offset},
                 {"hotness", word.hotness},
                 {"accessed_share", word.accessed_share}};
    if (with_again)
      json["again_share"] = word.again_share;
    if (!word.name.empty())
      json["name"] = word.name;
    list.push_back(std::move(json));
  }
  return list;
}

void put_sums(Json &json, const AssayObjectSums &sums) {
  json["bytes"] = sums.bytes;
  json["words_total"] = sums.units;
  json["words_used"] = sums.used_units;
  json["lines"] = sums.lines;
  json["lines_used"] = sums.used_lines;
  json["hotness"] = sums.hotness;
}

Json group_json(const ObjectRow &row, uint32_t mode) {
  Json json;
  json["id"] = row.id;
  json["kind"] = row.kind;
  json["name"] = row.name;
  json["type"] = row.type.empty() ? Json(nullptr) : Json(row.type);
  json["module"] = row.module.empty() ? Json(nullptr) : Json(row.module);
  json["file"] = row.file;
  json["line"] = row.line;
  json["owner"] = row.owner;
  json["alloc_stack"] = stack_json(row.alloc_stack);
  json["free_stack"] = stack_json(row.free_stack);
  json["contexts"] = row.contexts;
  json["count"] = row.sums.count;
  json["size"] = row.sums.size_max;
  json["size_min"] = row.sums.size_min;
  put_sums(json, row.sums);
  json["used_share"] = row.used_share();
  json["line_used_share"] = row.sums.line_units ? Json(row.line_used_share()) : Json(nullptr);
  json["unused_line_bytes"] = row.unused_line_bytes();
  json["score"] = row.score();
  json["unit_bytes"] = row.unit_bytes;
  json["cell_bytes"] = row.cell_bytes;
  const bool with_again = (mode & ASSAY_WORDS_LOCALITY) != 0;
  json["words"] = words_json(row.words, with_again);
  json["positions"] = words_json(row.positions, with_again);
  return json;
}

Json totals_json(const ObjectsResult &result) {
  Json json = {{"count", result.totals.count}};
  put_sums(json, result.totals);
  json["score"] = result.total_score;
  json["wasted_share"] = result.wasted_share;
  return json;
}

} // namespace

Document objects_document(const ObjectsResult &result, unsigned top) {
  Document document;
  document.put("schema", "assay.objects/1");
  document.put("program", program_json(result.process, result.program_build_id));
  document.put("machine", machine_json(result.process));
  document.put("unit", unit_of(result.mode));
  document.put("time_unit", time_unit_name(result.time_unit));
  document.put("samples", result.samples);
  document.put("interval", result.interval);
  document.put("last_interval", result.last_interval);
  document.put("losses", losses_json(result.losses));
  document.put("notes", result.notes);
  document.put("coverage", Json{{"groups_filtered_out", result.filtered_out}});
  document.put("findings", findings_json(result.findings));
  document.put("totals", totals_json(result));
  document.list("groups", shown(result.rows.size(), top),
                [&result](size_t index) { return group_json(result.rows[index], result.mode); });
  return document;
}

Json objects_json(const ObjectsResult &result, unsigned top) {
  Json json;
  json["samples"] = result.samples;
  json["findings"] = findings_json(result.findings);
  json["totals"] = totals_json(result);
  json["groups"] = Json::array();
  for (size_t i = 0; i < shown(result.rows.size(), top); i++)
    json["groups"].push_back(group_json(result.rows[i], result.mode));
  return json;
}

} // namespace report
