#include "report/fields_diff.h"

#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::StructChange;

size_t shown(const analyze::FieldsDiff &diff, unsigned top) {
  return top ? std::min<size_t>(top, diff.rows.size()) : diff.rows.size();
}

Json side_json(const StructChange::Side &side) {
  return {{"accesses", side.accesses}, {"size", side.size}, {"lines", side.lines}};
}

} // namespace

std::string diff_text(const analyze::FieldsDiff &diff, unsigned top, const Style &style) {
  if (diff.same)
    return "no difference in the accesses to fields, nor in the sizes of structs\n";
  Table table;
  for (const char *heading :
       {"accesses were", "are", "bytes were", "are", "lines an access were", "are"})
    table.column(heading, Table::Align::right);
  table.column("struct", Table::Align::left);
  for (size_t i = 0; i < shown(diff, top); i++) {
    const StructChange &row = diff.rows[i];
    const auto &[a, b] = std::pair(row.old_side, row.new_side);
    table.row({base::format_count(double(a.accesses)), base::format_count(double(b.accesses)),
               std::to_string(a.size), std::to_string(b.size), fmt::format("{:.2f}", a.lines),
               fmt::format("{:.2f}", b.lines),
               row.name + (a.accesses == 0   ? " (new)"
                           : b.accesses == 0 ? " (gone)"
                                             : "")});
  }
  return "\n" + style.strong("Which structs changed?") + "\n" + table.text(style) +
         more_text(diff.rows.size() - shown(diff, top), style);
}

Json diff_json(const analyze::FieldsDiff &diff, unsigned top) {
  Json json = {{"same", diff.same}, {"structs", Json::array()}};
  for (size_t i = 0; i < shown(diff, top); i++)
    json["structs"].push_back({{"name", diff.rows[i].name},
                               {"old", side_json(diff.rows[i].old_side)},
                               {"new", side_json(diff.rows[i].new_side)}});
  return json;
}

} // namespace report
