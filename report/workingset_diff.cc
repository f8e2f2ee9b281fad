// Two working sets beside each other: sizes, phases, owners of lines. Rows are paired by what
// survives a rebuild, so "new" and "gone" are rows of one side only.

#include "report/workingset_diff.h"

#include "analyze/place.h"
#include "base/units.h"
#include "report/text_parts.h"
#include "report/workingset.h"

#include <fmt/format.h>

namespace report {
namespace {

using analyze::OwnerChange;
using analyze::PhaseChange;
using analyze::WorkingSetDiff;
using analyze::WorkingSetSizes;
using Align = Table::Align;

std::string signed_bytes(double before, double after) {
  return (after < before ? "-" : "+") + base::format_bytes(std::abs(after - before));
}

// " (new)", " (gone)" or nothing.
const char *only_one(bool in_old, bool in_new) {
  return !in_old ? " (new)" : !in_new ? " (gone)" : "";
}

Json sizes_json(const WorkingSetSizes &sizes) {
  return {{"mean_bytes", sizes.mean_bytes},
          {"largest_bytes", sizes.largest_bytes},
          {"total_bytes", sizes.total_bytes}};
}

Json side_json(const OwnerChange::Side &side) {
  return {{"mean_bytes", side.mean_bytes}, {"most_bytes", side.most_bytes}};
}

Json side_json(const PhaseChange::Side &side) {
  return {
      {"phases", side.phases}, {"time_share", side.time_share}, {"mean_bytes", side.mean_bytes}};
}

std::string owners_text(const WorkingSetDiff &diff, unsigned top, const Style &style) {
  if (diff.owners.empty())
    return "";
  Table table;
  for (const char *heading : {"on average", "was", "is", "most was", "is"})
    table.column(heading, Align::right);
  table.column("of", Align::left);
  size_t rows = shown(diff.owners.size(), top);
  for (size_t i = 0; i < rows; i++) {
    const OwnerChange &row = diff.owners[i];
    const OwnerChange::Side &before = row.old_side, &after = row.new_side;
    table.row({signed_bytes(before.mean_bytes, after.mean_bytes),
               base::format_bytes(before.mean_bytes), base::format_bytes(after.mean_bytes),
               base::format_bytes(double(before.most_bytes)),
               base::format_bytes(double(after.most_bytes)),
               full_name(row.owner) + only_one(before.most_bytes, after.most_bytes)});
  }
  return "\n" + style.strong("What has more of the working set, or less?") + "\n" +
         table.text(style) + more_text(diff.owners.size() - rows, style);
}

std::string phases_text(const WorkingSetDiff &diff, unsigned top, const Style &style) {
  if (diff.phases.empty())
    return "";
  Table table;
  for (const char *heading : {"set", "was", "is", "of the time was", "is"})
    table.column(heading, Align::right);
  table.column("in", Align::left);
  table.column("filled by", Align::left);
  size_t rows = shown(diff.phases.size(), top);
  for (size_t i = 0; i < rows; i++) {
    const PhaseChange &row = diff.phases[i];
    const PhaseChange::Side &before = row.old_side, &after = row.new_side;
    table.row({signed_bytes(before.mean_bytes, after.mean_bytes),
               base::format_bytes(before.mean_bytes), base::format_bytes(after.mean_bytes),
               base::format_share(before.time_share), base::format_share(after.time_share),
               brief_function(row.function, kPhaseFunctionColumns) +
                   only_one(before.phases, after.phases),
               analyze::short_place(full_name(row.owner))});
  }
  return "\n" + style.strong("Which phases grew or shrank?") + "\n" + table.text(style) +
         more_text(diff.phases.size() - rows, style);
}

} // namespace

std::string diff_text(const WorkingSetDiff &diff, unsigned top, const Style &style) {
  std::string out;
  if (diff.same) {
    out = "no difference in the size of the working set, nor in what is in it\n";
  } else {
    auto change = [](double before, double after) {
      return base::format_bytes(before) + " -> " + base::format_bytes(after);
    };
    const WorkingSetSizes &a = diff.old_sizes, &b = diff.new_sizes;
    out = fmt::format("  the working set: {} on average, {} at its largest, {} ever touched\n",
                      change(a.mean_bytes, b.mean_bytes),
                      change(double(a.largest_bytes), double(b.largest_bytes)),
                      change(double(a.total_bytes), double(b.total_bytes)));
    for (const std::string &note : diff.notes)
      out += "  " + note + "\n";
    out += owners_text(diff, top, style) + phases_text(diff, top, style);
  }
  return out;
}

Json diff_json(const WorkingSetDiff &diff, unsigned top) {
  Json json = {{"same", diff.same},
               {"old", sizes_json(diff.old_sizes)},
               {"new", sizes_json(diff.new_sizes)},
               {"notes", diff.notes}};
  json["owners"] = Json::array();
  for (size_t i = 0; i < shown(diff.owners.size(), top); i++) {
    json["owners"].push_back(owner_json(diff.owners[i].owner));
    json["owners"].back()["old"] = side_json(diff.owners[i].old_side);
    json["owners"].back()["new"] = side_json(diff.owners[i].new_side);
  }
  json["phases"] = Json::array();
  for (size_t i = 0; i < shown(diff.phases.size(), top); i++)
    json["phases"].push_back({{"function", diff.phases[i].function},
                              {"owner", owner_json(diff.phases[i].owner)},
                              {"old", side_json(diff.phases[i].old_side)},
                              {"new", side_json(diff.phases[i].new_side)}});
  return json;
}

} // namespace report
