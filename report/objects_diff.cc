// A cell has two sides, `12 -> 8`, or one where both are the same after rounding. Of objects
// without used lines no share is said. An object that is on one side only is marked as new or gone.

#include "report/objects_diff.h"
#include "report/text_parts.h"

#include "base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace report {
namespace {

using analyze::ObjectChange;
using analyze::ObjectsDiff;

std::optional<double> line_used_share(const AssayObjectSums &sums) {
  return sums.line_units ? std::optional(double(sums.used_units) / double(sums.line_units))
                         : std::nullopt;
}

std::string line_used_text(const AssayObjectSums &sums) {
  const auto share = line_used_share(sums);
  return share ? base::format_share(*share) : "-";
}

std::string was_and_is(const std::string &before, const std::string &after) {
  return before == after ? after : before + " -> " + after;
}

// " (used now: b; no longer: a)", of the first few.
std::string words_text(const ObjectChange &row) {
  auto first_of = [](const std::vector<std::string> &names) {
    constexpr size_t kShown = 4;
    const size_t shown = std::min(names.size(), kShown);
    return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + ptrdiff_t(shown), ", "),
                       shown < names.size() ? ", ..." : "");
  };
  std::vector<std::string> parts;
  if (!row.newly_used.empty())
    parts.push_back("used now: " + first_of(row.newly_used));
  if (!row.no_longer_used.empty())
    parts.push_back("no longer: " + first_of(row.no_longer_used));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; "));
}

Json side_json(const AssayObjectSums &sums) {
  const auto share = line_used_share(sums);
  return {
      {"count", sums.count},           {"bytes", sums.bytes},
      {"words_total", sums.units},     {"words_used", sums.used_units},
      {"lines_used", sums.used_lines}, {"line_used_share", share ? Json(*share) : Json(nullptr)}};
}

} // namespace

std::string diff_text(const ObjectsDiff &diff, unsigned top, const Style &style) {
  if (diff.same)
    return "no difference in which words of objects are used\n";
  std::string out = fmt::format(
      "  {} -> {}; {} -> {} of the bytes that came with used words were not used\n\n",
      base::format_count(double(diff.old_totals.used_lines)),
      base::format_counted(double(diff.new_totals.used_lines), "used line"),
      base::format_share(diff.old_wasted_share), base::format_share(diff.new_wasted_share));
  Table table;
  for (const char *heading : {"objects", "used lines", "used of lines"})
    table.column(heading, Table::Align::right);
  table.column("object", Table::Align::left);
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++) {
    const ObjectChange &row = diff.rows[i];
    const AssayObjectSums &a = row.old_sums, &b = row.new_sums;
    std::string name =
        (row.kind == "heap" ? row.type.empty() ? "" : row.type + " in " : row.kind + " ") +
        row.name;
    name += !a.count ? " (new)" : !b.count ? " (gone)" : words_text(row);
    table.row({was_and_is(base::format_count(double(a.count)), base::format_count(double(b.count))),
               was_and_is(base::format_count(double(a.used_lines)),
                          base::format_count(double(b.used_lines))),
               was_and_is(line_used_text(a), line_used_text(b)), printable(name)});
  }
  out += style.strong("What changed in the use of objects?") + "\n" + table.text(style);
  if (shown(diff.rows.size(), top) < diff.rows.size())
    out += "  " +
           more(diff.rows.size() - shown(diff.rows.size(), top),
                fmt::format("--top {}", diff.rows.size())) +
           "\n";
  for (const std::string &note : diff.notes)
    out += "  " + note + "\n";
  return out;
}

Json diff_json(const ObjectsDiff &diff, unsigned top) {
  Json document = {{"same", diff.same}, {"notes", diff.notes}};
  document["totals"] = {{"old", side_json(diff.old_totals)}, {"new", side_json(diff.new_totals)}};
  document["totals"]["old"]["wasted_share"] = diff.old_wasted_share;
  document["totals"]["new"]["wasted_share"] = diff.new_wasted_share;
  document["groups"] = Json::array();
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++) {
    const ObjectChange &row = diff.rows[i];
    document["groups"].push_back({{"kind", row.kind},
                                  {"name", row.name},
                                  {"type", row.type.empty() ? Json(nullptr) : Json(row.type)},
                                  {"old", side_json(row.old_sums)},
                                  {"new", side_json(row.new_sums)},
                                  {"newly_used", row.newly_used},
                                  {"no_longer_used", row.no_longer_used}});
  }
  return document;
}

} // namespace report
