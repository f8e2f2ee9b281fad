// `assay trace counts`: schema assay.trace-counts/1.
//
// The same sums by function, instruction, file and thread, with one table for all of them. Text
// leaves out a table of one file or one thread, because it would repeat the head; JSON always has
// both lists. All shares are of all accesses, also of those whose rows are cut.

#include "report/trace_parts.h"

#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

namespace report {
namespace {

using analyze::AccessSums;
using Align = Table::Align;

constexpr const char *kKeys[] = {"accesses", "reads", "writes", "bytes"};

uint64_t weight(const AccessSums &sums, const std::string &key) {
  return key == "reads"    ? sums.reads()
         : key == "writes" ? sums.writes()
         : key == "bytes"  ? sums.bytes
                           : sums.accesses();
}

Table table(const char *what) {
  Table table;
  for (const char *heading : {"accesses", "share", "reads", "writes", "bytes"})
    table.column(heading, Align::right);
  table.column(what, Align::left);
  return table;
}

void add_row(Table &table, const AccessSums &sums, uint64_t all, const PlaceText &place) {
  table.row({count_text(sums.accesses()), percent_text(sums.accesses(), all),
             count_text(sums.reads()), count_text(sums.writes()),
             base::format_bytes(double(sums.bytes)), place.name},
            place.where);
}

// The rows of one question; the whole is what shares are of.
template <class Rows, class Name>
std::string table_text(const char *question, const char *what, const Rows &rows, uint64_t all,
                       const TraceQuery &query, const Style &style, Name name) {
  if (rows.empty())
    return "";
  Table to = table(what);
  const size_t shown = rows_of_text(query, rows.size());
  for (size_t i = 0; i < shown; i++)
    add_row(to, rows[i].sums, all, name(rows[i].place));
  return "\n" + style.strong(question) + "\n" + to.text(style) +
         more_text(rows.size() - shown, style);
}

void put(Json &json, const AccessSums &sums, uint64_t all) {
  json["accesses"] = sums.accesses();
  json["reads"] = sums.reads();
  json["writes"] = sums.writes();
  json["bytes"] = sums.bytes;
  json["access_share"] = share_of(sums.accesses(), all);
}

template <class Rows, class Place>
Json rows_json(const Rows &rows, uint64_t all, const TraceQuery &query, Place place) {
  Json list = Json::array();
  for (size_t i = 0; i < rows_of_json(query, rows.size()); i++) {
    Json json = place(rows[i].place);
    put(json, rows[i].sums, all);
    list.push_back(std::move(json));
  }
  return list;
}

} // namespace

std::span<const char *const> counts_keys() {
  return kKeys;
}

std::string counts_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                        const analyze::AccessCounts &counts, const TraceQuery &query,
                        const Style &style) {
  const AccessSums all = counts.all();
  const auto size = counts.footprint();
  const auto &threads = counts.of_thread();
  std::string text = trace_head_text(program, "trace counts", style);
  if (all.accesses() == 0)
    return text + no_accesses_text(program);
  text += fmt::format("  {} of {}: {}, {}, by {}\n",
                      base::format_counted(double(all.accesses()), "access", "accesses"),
                      base::format_bytes(double(all.bytes)),
                      base::format_counted(double(all.reads()), "read"),
                      base::format_counted(double(all.writes()), "write"),
                      base::with_noun(threads.size(), "thread"));
  text += fmt::format(
      "  footprint {}: {} of 64 bytes, {} of them written, in {} of 4 KiB\n",
      base::format_bytes(double(size.lines) * 64), base::format_counted(double(size.lines), "line"),
      count_text(size.written_lines), base::format_counted(double(size.pages), "page"));
  TracePlaces of(program, places, query);
  auto by = [&](const AccessSums &sums) { return weight(sums, query.sort); };
  const auto functions = of.functions(counts.of_site(), by);
  if (functions.empty())
    return text + no_match_text(query);
  text +=
      table_text("Which functions access memory most often?", "function", functions, all.accesses(),
                 query, style, [&](uint32_t place) { return of.function_text(place); });
  text += table_text("Which instructions?", "instruction", of.instructions(counts.of_site(), by),
                     all.accesses(), query, style,
                     [&](uint32_t place) { return of.instruction_text(place); });
  const auto modules = of.modules(counts.of_site(), by);
  if (modules.size() > 1)
    text += table_text("Which files?", "file", modules, all.accesses(), query, style,
                       [&](uint32_t place) { return PlaceText{of.module_text(place), ""}; });
  if (threads.size() > 1) {
    Table to = table("thread");
    for (const auto &[thread, sums] : threads)
      add_row(to, sums, all.accesses(),
              {fmt::format("{} of process {}", thread.second, thread.first), ""});
    text += "\n" + style.strong("Which threads?") + "\n" + to.text(style);
  }
  return text + trace_coverage_text(program, style);
}

Json counts_json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                 const analyze::AccessCounts &counts, const TraceQuery &query) {
  const AccessSums all = counts.all();
  const auto size = counts.footprint();
  Json json = trace_head_json(program, "assay.trace-counts/1", "accesses");
  put(json, all, all.accesses());
  json.erase("access_share");
  json["footprint"] = {
      {"line_bytes", 64},   {"lines", size.lines}, {"written_lines", size.written_lines},
      {"page_bytes", 4096}, {"pages", size.pages}, {"written_pages", size.written_pages}};
  TracePlaces of(program, places, query);
  auto by = [&](const AccessSums &sums) { return weight(sums, query.sort); };
  json["modules"] =
      rows_json(of.modules(counts.of_site(), by), all.accesses(), query,
                [&](uint32_t place) { return Json{{"path", of.module_text(place)}}; });
  json["functions"] = rows_json(of.functions(counts.of_site(), by), all.accesses(), query,
                                [&](uint32_t place) { return of.function_json(place); });
  json["instructions"] = rows_json(of.instructions(counts.of_site(), by), all.accesses(), query,
                                   [&](uint32_t place) { return of.instruction_json(place); });
  Json threads = Json::array();
  for (const auto &[thread, sums] : counts.of_thread()) {
    Json row = {{"process", thread.first}, {"thread", thread.second}};
    put(row, sums, all.accesses());
    threads.push_back(std::move(row));
  }
  json["threads"] = std::move(threads);
  json["notes"] = places.notes();
  return json;
}

} // namespace report
