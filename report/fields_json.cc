// The document assay.fields/1.
//
// All figures of a struct stand in one object, with its fields, holes, pairs and advice. Offsets
// are bytes; only bit fields have bits as well, and only arrays a stride. Advice is there even if
// it is not worth it, with a key that says so. --top cuts the structs and nothing within them.

#include "abi/fields.h"
#include "report/fields.h"

#include <fmt/format.h>

namespace report {
namespace {

using analyze::FieldRow;
using analyze::StructRow;

Json field_json(const StructRow &row, const FieldRow &field) {
  const profile::Leaf &leaf = row.record.leaves[field.leaf];
  Json json = {{"name", leaf.name},
               {"short_name", row.field_names[field.leaf]},
               {"type", leaf.type},
               {"offset", leaf.offset_bits / 8},
               {"size", (leaf.size_bits + 7) / 8},
               {"reads", field.reads},
               {"writes", field.writes},
               {"copied", field.copied}};
  if (leaf.flags & ASSAY_LEAF_BIT_FIELD) {
    json["bit_offset"] = leaf.offset_bits % 8;
    json["bit_size"] = leaf.size_bits;
  }
  if (leaf.elements > 1) {
    json["elements"] = leaf.elements;
    json["stride"] = leaf.stride;
  }
  json["places"] = Json::array();
  for (const FieldRow::Place &place : field.places)
    json["places"].push_back(
        {{"function", place.function}, {"line", place.line}, {"accesses", place.accesses}});
  return json;
}

Json members_json(const StructRow &row, const std::vector<size_t> &members) {
  Json names = Json::array();
  for (size_t i : members)
    names.push_back(row.members[i].name);
  return names;
}

Json advice_json(const StructRow &row) {
  const analyze::LayoutAdvice &advice = row.advice;
  Json json = {
      {"worth_it", advice.is_worth_it},      {"order", members_json(row, advice.layout.order)},
      {"lines_before", advice.lines_before}, {"lines_after", advice.lines_after},
      {"size_before", advice.size_before},   {"size_after", advice.size_after},
      {"sequential", advice.is_sweep},       {"cold", members_json(row, advice.cold)}};
  if (!advice.cold.empty()) {
    json["lines_split"] = advice.lines_split;
    json["size_split"] = advice.size_split;
  }
  return json;
}

Json struct_json(const StructRow &row) {
  Json json = {{"name", row.record.name},
               {"id", fmt::format("{:016x}", row.record.hash)},
               {"size", row.record.size},
               {"file", row.record.file},
               {"line", row.record.line},
               {"accesses", row.accesses()},
               {"reads", row.reads},
               {"writes", row.writes},
               {"used_share", row.used_share},
               {"disparity", row.disparity},
               {"score", row.score},
               {"fields", Json::array()},
               {"holes", Json::array()},
               {"affinity", Json::array()},
               {"sets", row.set_count},
               {"sampled", row.is_sampled},
               {"samples", row.is_sampled ? row.sampling.rounds : 0}};
  for (const FieldRow &field : row.fields)
    json["fields"].push_back(field_json(row, field));
  for (const analyze::Hole &hole : row.holes)
    json["holes"].push_back({{"offset", hole.offset}, {"size", hole.size}});
  for (const analyze::Affinity &pair : row.affinity)
    json["affinity"].push_back({{"a", row.record.leaves[pair.a].name},
                                {"b", row.record.leaves[pair.b].name},
                                {"together_share", pair.together_share}});
  json["advice"] = advice_json(row);
  return json;
}

} // namespace

Json fields_document(const analyze::FieldsResult &result, unsigned top) {
  Json json;
  json["schema"] = "assay.fields/1";
  json["program"] = program_json(result.process, result.program_build_id);
  json["machine"] = machine_json(result.process);
  json["unit"] =
      "one executed load or store of the optimised program, for each field whose bytes it covers";
  json["losses"] = losses_json(result.losses);
  json["notes"] = result.notes;
  json["coverage"] = Json::object();
  json["findings"] = findings_json(result.findings);
  json["accesses"] = result.of_structs;
  json["unattributed"] = result.lost;
  json["attributed_share"] = result.attributed_share;
  json["structs"] = Json::array();
  for (const StructRow &row : result.structs) {
    if (top && json["structs"].size() == top)
      break;
    json["structs"].push_back(struct_json(row));
  }
  json["sharing"] = Json::array();
  for (const analyze::SharingRow &row : result.sharing)
    json["sharing"].push_back({{"struct", row.record},
                               {"field", row.field},
                               {"other_struct", row.other_record},
                               {"other_field", row.other_field},
                               {"short_field", row.short_field},
                               {"other_short_field", row.other_short_field},
                               {"same_object", row.same_object},
                               {"changes", row.count}});
  json["filtered_out"] = {{"structs", result.filtered}};
  return json;
}

} // namespace report
