#include "report/fields_diff.h"

#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::StructChange;

// The fields of the structs that are shown, by struct.
std::string fields_text(const analyze::FieldsDiff &diff, unsigned top, const Style &style) {
  Table table;
  for (const char *heading : {"reads were", "are", "writes were", "are"})
    table.column(heading, Table::Align::right);
  table.column("field", Table::Align::left);
  size_t left_out = 0, fields = 0;
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++) {
    const StructChange &row = diff.rows[i];
    const size_t of_row = shown(row.fields.size(), top);
    left_out += row.fields.size() - of_row;
    fields += of_row;
    for (size_t f = 0; f < of_row; f++) {
      const analyze::AccessChange &field = row.fields[f];
      table.row({base::format_count(double(field.old_side.reads)),
                 base::format_count(double(field.new_side.reads)),
                 base::format_count(double(field.old_side.writes)),
                 base::format_count(double(field.new_side.writes)),
                 printable(row.name + "." + field.name)});
    }
  }
  return fields ? "\n" + style.strong("Which of their fields?") + "\n" + table.text(style) +
                      more_text(left_out, style)
                : "";
}

Json fields_json(const StructChange &row) {
  Json fields = Json::array();
  for (const analyze::AccessChange &field : row.fields)
    fields.push_back(
        {{"name", field.name},
         {"old", {{"reads", field.old_side.reads}, {"writes", field.old_side.writes}}},
         {"new", {{"reads", field.new_side.reads}, {"writes", field.new_side.writes}}}});
  return fields;
}

Json side_json(const StructChange::Side &side) {
  return {{"accesses", side.accesses}, {"size", side.size}, {"lines", side.lines}};
}

} // namespace

std::string diff_text(const analyze::FieldsDiff &diff, unsigned top, const Style &style) {
  if (diff.same)
    return "no difference in the accesses to fields, nor in the members of structs\n";
  Table table;
  for (const char *heading :
       {"accesses were", "are", "bytes were", "are", "lines an access were", "are"})
    table.column(heading, Table::Align::right);
  table.column("struct", Table::Align::left);
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++) {
    const StructChange &row = diff.rows[i];
    const auto &[a, b] = std::pair(row.old_side, row.new_side);
    table.row({base::format_count(double(a.accesses)), base::format_count(double(b.accesses)),
               std::to_string(a.size), std::to_string(b.size), fmt::format("{:.2f}", a.lines),
               fmt::format("{:.2f}", b.lines),
               row.name + (a.accesses == 0     ? " (new)"
                           : b.accesses == 0   ? " (gone)"
                           : row.members_moved ? " (other layout)"
                                               : "")});
  }
  return "\n" + style.strong("Which structs changed?") + "\n" + table.text(style) +
         more_text(diff.rows.size() - shown(diff.rows.size(), top), style) +
         fields_text(diff, top, style);
}

Json diff_json(const analyze::FieldsDiff &diff, unsigned top) {
  Json json = {{"same", diff.same}, {"structs", Json::array()}};
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++)
    json["structs"].push_back({{"name", diff.rows[i].name},
                               {"old", side_json(diff.rows[i].old_side)},
                               {"new", side_json(diff.rows[i].new_side)},
                               {"members_moved", diff.rows[i].members_moved},
                               {"fields", fields_json(diff.rows[i])}});
  return json;
}

} // namespace report
