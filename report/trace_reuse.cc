// `assay trace reuse`: schema assay.trace-reuse/1.
//
// Distances are counted by powers of two, so a median is known only as a bound: it is shown as "<
// N". First touches have no distance, and so are a row and a column of their own. The histogram
// ends with the last distance that has touches; where there are next to none, several powers of two
// are one row. JSON leaves out empty powers of two, and gives the least and the most of each, so
// that readers need not know how they are counted.

#include "report/trace_parts.h"

#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace report {
namespace {

using analyze::ReuseSums;
using Align = Table::Align;

constexpr const char *kKeys[] = {"touches", "far", "first"};
constexpr uint64_t kL1Lines = 512, kFarLines = 16384; // 32 KiB and 1 MiB
constexpr unsigned kBarColumns = 30;
constexpr double kRare = .0005; // of all touches: buckets side by side with less are one row

uint64_t weight(const ReuseSums &sums, const std::string &key) {
  return key == "far" ? sums.beyond(kFarLines) : key == "first" ? sums.first : sums.accesses();
}

ReuseSums all_of(const std::vector<ReuseSums> &of_site) {
  ReuseSums all;
  for (const ReuseSums &sums : of_site)
    all += sums;
  return all;
}

// "4 to 7", of the distances in some buckets side by side.
std::string range_text(unsigned first, unsigned last) {
  const uint64_t least = ReuseSums::least_of(first), end = ReuseSums::least_of(last + 1);
  if (end == least + 1)
    return std::to_string(least);
  return fmt::format("{} to {}", least, end - 1);
}

std::string bar(uint64_t part, uint64_t most) {
  std::string text;
  for (long columns = std::lround(share_of(part, most) * kBarColumns); columns > 0; columns--)
    text += "█";
  return text;
}

std::string histogram_text(const ReuseSums &all, const Style &style) {
  Table table;
  for (const char *heading : {"other lines between", "touches", "share", "up to here"})
    table.column(heading, Align::right);
  table.column("", Align::left);
  uint64_t most = all.first, sum = 0;
  unsigned last = 0;
  for (unsigned bucket = 0; bucket < ReuseSums::kBuckets; bucket++) {
    most = std::max(most, all.count[bucket]);
    if (all.count[bucket])
      last = bucket;
  }
  auto is_border = [](unsigned bucket) { // of the columns of the tables behind it
    return ReuseSums::least_of(bucket) == kL1Lines || ReuseSums::least_of(bucket) == kFarLines;
  };
  auto is_rare = [&](unsigned bucket) {
    return share_of(all.count[bucket], all.accesses()) < kRare;
  };
  for (unsigned bucket = 0; bucket <= last; bucket++) {
    const unsigned first = bucket;
    uint64_t touches = all.count[bucket];
    while (is_rare(first) && bucket < last && is_rare(bucket + 1) && !is_border(bucket + 1))
      touches += all.count[++bucket];
    sum += touches;
    table.row({range_text(first, bucket), count_text(touches),
               percent_text(touches, all.accesses()), percent_text(sum, all.accesses()),
               bar(touches, most)});
  }
  table.row({"first touch", count_text(all.first), percent_text(all.first, all.accesses()),
             percent_text(sum + all.first, all.accesses()), bar(all.first, most)});
  return "\n" + style.strong("How far apart are touches of a line?") + "\n" + table.text(style);
}

std::string median_text(const ReuseSums &sums) {
  const uint64_t below = sums.median_below();
  return below == UINT64_MAX ? "-" : fmt::format("< {}", count_text(below));
}

template <class Rows, class Name>
std::string far_text(const char *question, const char *what, const Rows &rows,
                     const TraceQuery &query, const Style &style, Name name) {
  Table table;
  for (const char *heading : {"touches", "median", "over 32 KiB", "over 1 MiB", "first"})
    table.column(heading, Align::right);
  table.column(what, Align::left);
  const size_t shown = rows_of_text(query, rows.size());
  for (size_t i = 0; i < shown; i++) {
    const ReuseSums &sums = rows[i].sums;
    const PlaceText place = name(rows[i].place);
    table.row({count_text(sums.accesses()), median_text(sums),
               percent_text(sums.beyond(kL1Lines), sums.accesses()),
               percent_text(sums.beyond(kFarLines), sums.accesses()), count_text(sums.first),
               place.name},
              place.where);
  }
  return "\n" + style.strong(question) + "\n" + table.text(style) +
         more_text(rows.size() - shown, style);
}

void put(Json &json, const ReuseSums &sums) {
  json["touches"] = sums.accesses();
  json["first_touches"] = sums.first;
  Json list = Json::array();
  for (unsigned bucket = 0; bucket < ReuseSums::kBuckets; bucket++)
    if (sums.count[bucket])
      list.push_back({{"least", ReuseSums::least_of(bucket)},
                      {"most", ReuseSums::least_of(bucket + 1) - 1},
                      {"touches", sums.count[bucket]},
                      {"touch_share", share_of(sums.count[bucket], sums.accesses())}});
  json["distances"] = std::move(list);
}

} // namespace

std::span<const char *const> reuse_keys() {
  return kKeys;
}

std::string reuse_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                       const analyze::ReuseDistances &distances, const TraceQuery &query,
                       const Style &style) {
  const std::vector<ReuseSums> of_site = distances.of_site();
  const ReuseSums all = all_of(of_site);
  std::string text = trace_head_text(program, "trace reuse", style);
  if (all.accesses() == 0)
    return text + no_accesses_text(program);
  text += fmt::format("  {} of {} of 64 bytes ({})\n",
                      base::format_counted(double(all.accesses()), "touch", "touches"),
                      base::format_counted(double(all.first), "line"),
                      base::format_bytes(double(all.first) * 64));
  text += histogram_text(all, style);
  TracePlaces of(program, places, query);
  auto by = [&](const ReuseSums &sums) { return weight(sums, query.sort); };
  const auto functions = of.functions(of_site, by);
  if (functions.empty())
    return text + no_match_text(query);
  text +=
      far_text("Which functions touch lines again, and after how many others?", "function",
               functions, query, style, [&](uint32_t place) { return of.function_text(place); });
  text += far_text("Which instructions?", "instruction", of.instructions(of_site, by), query, style,
                   [&](uint32_t place) { return of.instruction_text(place); });
  return text + trace_coverage_text(program, style);
}

Json reuse_json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                const analyze::ReuseDistances &distances, const TraceQuery &query) {
  const std::vector<ReuseSums> of_site = distances.of_site();
  Json json = trace_head_json(program, "assay.trace-reuse/1", "touches of lines");
  json["line_bytes"] = 64;
  put(json, all_of(of_site));
  TracePlaces of(program, places, query);
  auto by = [&](const ReuseSums &sums) { return weight(sums, query.sort); };
  Json functions = Json::array(), instructions = Json::array();
  const auto function_rows = of.functions(of_site, by);
  for (size_t i = 0; i < rows_of_json(query, function_rows.size()); i++) {
    functions.push_back(of.function_json(function_rows[i].place));
    put(functions.back(), function_rows[i].sums);
  }
  const auto instruction_rows = of.instructions(of_site, by);
  for (size_t i = 0; i < rows_of_json(query, instruction_rows.size()); i++) {
    instructions.push_back(of.instruction_json(instruction_rows[i].place));
    put(instructions.back(), instruction_rows[i].sums);
  }
  json["functions"] = std::move(functions);
  json["instructions"] = std::move(instructions);
  json["notes"] = places.notes();
  return json;
}

} // namespace report
