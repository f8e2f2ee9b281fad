// Old, new and the change side by side; JSON keeps both sides whole, so that readers subtract what they want.
//
// In text, a site that only one run has is marked as new or gone. Accesses are compared only if
// both runs measured them: text has a dash in their place. Both forms cut the list of sites alike.

#include "report/heap_diff.h"
#include "report/text_parts.h"

#include "analyze/type_names.h"
#include "base/units.h"

#include <fmt/format.h>

namespace report {
namespace {

using analyze::HeapDiff;
using analyze::HeapDiffRow;
using analyze::HeapSums;

std::string signed_bytes(uint64_t before, uint64_t after) {
  return (after < before ? "-" : "+") +
         base::format_bytes(after < before ? double(before - after) : double(after - before));
}

std::string signed_count(uint64_t before, uint64_t after) {
  return (after < before ? "-" : "+") +
         base::format_count(after < before ? double(before - after) : double(after - before));
}

// Where only the kinds of accesses have changed, those.
std::string accesses_text(const HeapSums &before, const HeapSums &after) {
  const std::string change = signed_count(before.accesses(), after.accesses());
  return before.accesses() != after.accesses() || before.all.reads == after.all.reads
             ? change
             : fmt::format("{} ({} stores)", change,
                           signed_count(before.all.writes, after.all.writes));
}

Json side_json(const HeapSums &sums, bool reads_apart, bool is_counted) {
  Json json = {{"alloc_count", sums.all.alloc_count}, {"size_total", sums.all.size_total}};
  put_accesses(json, sums.all.reads, sums.all.writes, reads_apart);
  json["live_count"] = sums.live.alloc_count;
  json["live_bytes"] = sums.live.size_total;
  json["used_share"] =
      is_counted && sums.all.blocks_spanned ? Json(sums.used_share()) : Json(nullptr);
  return json;
}

std::string sites_text(const HeapDiff &diff, unsigned top, const Style &style) {
  Table table;
  for (const char *heading : {"bytes", "objects", "accesses", "live bytes"})
    table.column(heading, Table::Align::right);
  table.column("site", Table::Align::left);
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++) {
    const HeapDiffRow &row = diff.rows[i];
    const HeapSums &before = row.old_sums, &after = row.new_sums;
    std::string place = analyze::brief_place(row.owner);
    if (before.all.alloc_count == 0)
      place += " (new)";
    else if (after.all.alloc_count == 0)
      place += " (gone)";
    table.row(
        {signed_bytes(before.all.size_total, after.all.size_total),
         signed_count(before.all.alloc_count, after.all.alloc_count),
         diff.accesses_measured ? accesses_text(before, after) : "-",
         signed_bytes(before.live.size_total, after.live.size_total),
         printable(row.type.empty() ? place : analyze::short_type(row.type) + " in " + place)});
  }
  std::string out = style.strong("What changed?") + "\n" + table.text(style);
  if (shown(diff.rows.size(), top) < diff.rows.size())
    out += "  " +
           more(diff.rows.size() - shown(diff.rows.size(), top),
                fmt::format("--top {}", diff.rows.size())) +
           "\n";
  return out;
}

std::string globals_text(const HeapDiff &diff, unsigned top, const Style &style) {
  const size_t rows = shown(diff.globals.size(), top);
  Table table;
  table.column("accesses were", Table::Align::right);
  table.column("are", Table::Align::right);
  table.column("global", Table::Align::left);
  for (size_t i = 0; i < rows; i++) {
    const analyze::AccessChange &row = diff.globals[i];
    table.row({base::format_count(double(row.old_side.accesses())),
               base::format_count(double(row.new_side.accesses())), printable(row.name)});
  }
  return style.strong("Which globals are accessed more, or less?") + "\n" + table.text(style) +
         more_text(diff.globals.size() - rows, style);
}

} // namespace

std::string diff_text(const HeapDiff &diff, unsigned top, const Style &style) {
  if (diff.same)
    return std::string("no difference in allocations, bytes, ") +
           (diff.accesses_measured ? "accesses, " : "") + "peak or live bytes\n";
  const AssayHib &a = diff.old_totals.all, &b = diff.new_totals.all;
  std::string out = fmt::format(
      "  {} -> {}, {} -> {}, peak {} -> {}, {}\n\n", base::format_count(double(a.alloc_count)),
      base::format_counted(double(b.alloc_count), "allocation"),
      base::format_bytes(double(a.size_total)), base::format_bytes(double(b.size_total)),
      base::format_bytes(double(diff.old_peak_bytes)),
      base::format_bytes(double(diff.new_peak_bytes)),
      diff.accesses_measured
          ? fmt::format(
                "{} -> {}", base::format_count(double(diff.old_totals.accesses())),
                base::format_counted(double(diff.new_totals.accesses()), "access", "accesses"))
          : "accesses not measured in both");
  if (!diff.rows.empty())
    out += sites_text(diff, top, style);
  if (!diff.globals.empty())
    out += globals_text(diff, top, style);
  for (const analyze::EventChange &row : diff.events)
    out += fmt::format("  event {}: {} -> {}, weight {} -> {}\n", printable(row.name),
                       base::format_count(double(row.old_side.count)),
                       base::format_counted(double(row.new_side.count), "time"),
                       base::format_count(double(row.old_side.weight)),
                       base::format_count(double(row.new_side.weight)));
  return out;
}

Json diff_json(const HeapDiff &diff, unsigned top) {
  Json document = {{"schema", "assay.diff/1"},
                   {"same", diff.same},
                   {"accesses_measured", diff.accesses_measured}};
  document["totals"] = {
      {"old", side_json(diff.old_totals, diff.reads_apart, diff.accesses_measured)},
      {"new", side_json(diff.new_totals, diff.reads_apart, diff.accesses_measured)}};
  document["totals"]["old"]["peak_bytes"] = diff.old_peak_bytes;
  document["totals"]["new"]["peak_bytes"] = diff.new_peak_bytes;
  document["sites"] = Json::array();
  for (size_t i = 0; i < shown(diff.rows.size(), top); i++) {
    const HeapDiffRow &row = diff.rows[i];
    document["sites"].push_back(
        {{"owner", frame_json(row.owner)},
         {"type", row.type},
         {"old", side_json(row.old_sums, diff.reads_apart, row.old_counted)},
         {"new", side_json(row.new_sums, diff.reads_apart, row.new_counted)}});
  }
  document["globals"] = Json::array();
  for (const analyze::AccessChange &row : diff.globals) {
    Json change = {{"name", row.name}, {"old", Json::object()}, {"new", Json::object()}};
    put_accesses(change["old"], row.old_side.reads, row.old_side.writes, diff.reads_apart);
    put_accesses(change["new"], row.new_side.reads, row.new_side.writes, diff.reads_apart);
    document["globals"].push_back(std::move(change));
  }
  document["events"] = Json::array();
  for (const analyze::EventChange &row : diff.events)
    document["events"].push_back(
        {{"name", row.name},
         {"old", {{"count", row.old_side.count}, {"weight", row.old_side.weight}}},
         {"new", {{"count", row.new_side.count}, {"weight", row.new_side.weight}}}});
  return document;
}

} // namespace report
