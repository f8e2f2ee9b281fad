// `assay trace cache`: schema assay.trace-cache/1.
//
// Each level has two shares: of the touches that come to it, which is how good it is, and of all
// touches, which is what it costs. Only levels that are simulated have columns and keys. Functions
// and instructions are sorted by the misses of one level, L1 unless --sort says otherwise. The
// number of threads stands in the head, because they share only the last level.

#include "report/trace_parts.h"

#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

namespace report {
namespace {

using analyze::CacheSettings;
using analyze::CacheShape;
using analyze::CacheSimulation;
using analyze::CacheSums;
using analyze::Level;
using analyze::TlbShape;
using Align = Table::Align;

constexpr const char *kKeys[] = {"l1", "l2", "llc", "tlb", "l2_tlb", "touches"};

uint64_t weight(const CacheSums &sums, const std::string &key) {
  if (key == "touches")
    return sums.touches;
  for (Level level : {Level::l2, Level::llc, Level::tlb, Level::l2_tlb})
    if (key == level_key(level))
      return sums.missed(level);
  return sums.missed(Level::l1);
}

std::string shape_text(const CacheSettings &settings, Level level) {
  switch (level) {
  case Level::l1: return settings.l1.text();
  case Level::l2: return settings.l2.value_or(CacheShape()).text();
  case Level::llc: return settings.llc.value_or(CacheShape()).text();
  case Level::tlb: return settings.tlb.text();
  case Level::l2_tlb: return settings.l2_tlb.value_or(TlbShape()).text();
  }
  return "";
}

// Touches that come to a level: of the first ones all, of others what the one before missed.
uint64_t asked(const CacheSimulation &simulation, const CacheSums &sums, Level level) {
  switch (level) {
  case Level::l1:
  case Level::tlb: return sums.touches;
  case Level::l2: return sums.missed(Level::l1);
  case Level::llc: return sums.missed(simulation.settings().l2 ? Level::l2 : Level::l1);
  case Level::l2_tlb: return sums.missed(Level::tlb);
  }
  return 0;
}

std::string levels_text(const CacheSimulation &simulation, const CacheSums &all,
                        const Style &style) {
  Table table;
  table.column("level", Align::left);
  table.column("shape", Align::left);
  for (const char *heading : {"touches", "misses", "of these", "of all"})
    table.column(heading, Align::right);
  for (Level level : simulation.levels()) {
    const uint64_t touches = asked(simulation, all, level), misses = all.missed(level);
    table.row({level_name(level), shape_text(simulation.settings(), level), count_text(touches),
               count_text(misses), percent_text(misses, touches),
               percent_text(misses, all.touches)});
  }
  return "\n" + style.strong("How often does each level miss?") + "\n" + table.text(style);
}

template <class Rows, class Name>
std::string misses_text(const char *question, const char *what, const Rows &rows,
                        const CacheSimulation &simulation, const CacheSums &all,
                        const TraceQuery &query, const Style &style, Name name) {
  Table table;
  table.column("touches", Align::right);
  for (Level level : simulation.levels())
    table.column(level_name(level), Align::right);
  table.column("of L1's", Align::right);
  table.column("miss L1", Align::right);
  table.column(what, Align::left);
  const size_t shown = rows_of_text(query, rows.size());
  for (size_t i = 0; i < shown; i++) {
    const CacheSums &sums = rows[i].sums;
    std::vector<std::string> cells = {count_text(sums.touches)};
    for (Level level : simulation.levels())
      cells.push_back(count_text(sums.missed(level)));
    cells.push_back(percent_text(sums.missed(Level::l1), all.missed(Level::l1)));
    cells.push_back(percent_text(sums.missed(Level::l1), sums.touches));
    const PlaceText place = name(rows[i].place);
    cells.push_back(place.name);
    table.row(std::move(cells), place.where);
  }
  return "\n" + style.strong(question) + "\n" + table.text(style) +
         more_text(rows.size() - shown, style);
}

Json level_json(const CacheSimulation &simulation, const CacheSums &all, Level level) {
  const CacheSettings &settings = simulation.settings();
  const uint64_t touches = asked(simulation, all, level), misses = all.missed(level);
  Json json = {{"level", level_key(level)}};
  if (level == Level::tlb || level == Level::l2_tlb) {
    const TlbShape shape =
        level == Level::tlb ? settings.tlb : settings.l2_tlb.value_or(TlbShape());
    json["entries"] = shape.entries;
    json["ways"] = shape.ways;
    json["page_bytes"] = settings.page_bytes;
  } else {
    const CacheShape shape = level == Level::l1   ? settings.l1
                             : level == Level::l2 ? settings.l2.value_or(CacheShape())
                                                  : settings.llc.value_or(CacheShape());
    json["bytes"] = shape.bytes;
    json["ways"] = shape.ways;
    json["line_bytes"] = shape.line_bytes;
  }
  json["is_shared"] = level == Level::llc;
  json["touches"] = touches;
  json["misses"] = misses;
  json["miss_share"] = share_of(misses, touches);
  json["miss_of_all_share"] = share_of(misses, all.touches);
  return json;
}

void put(Json &json, const CacheSimulation &simulation, const CacheSums &sums,
         const CacheSums &all) {
  json["touches"] = sums.touches;
  json["writes"] = sums.writes;
  Json misses = Json::object();
  for (Level level : simulation.levels())
    misses[level_key(level)] = sums.missed(level);
  json["misses"] = std::move(misses);
  json["miss_share"] = share_of(sums.missed(Level::l1), sums.touches);
  json["of_misses_share"] = share_of(sums.missed(Level::l1), all.missed(Level::l1));
}

} // namespace

std::span<const char *const> cache_keys() {
  return kKeys;
}

std::string cache_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                       const CacheSimulation &simulation, const TraceQuery &query,
                       const Style &style) {
  const CacheSums all = simulation.all();
  std::string text = trace_head_text(program, "trace cache", style);
  if (all.touches == 0)
    return text + no_accesses_text(program);
  text += fmt::format(
      "  {} of lines, {} of them {}, by {}; pages of {}\n",
      base::format_counted(double(all.touches), "touch", "touches"), count_text(all.writes),
      all.writes == 1 ? "a write" : "writes",
      simulation.threads() == 1
          ? std::string("1 thread")
          : fmt::format("{} threads, which share the last level alone", simulation.threads()),
      base::format_bytes(double(simulation.settings().page_bytes)));
  text += levels_text(simulation, all, style);
  text +=
      findings_text(analyze::cache_findings(simulation, places), query.top ? query.top : 5, style);
  TracePlaces of(program, places, query);
  auto by = [&](const CacheSums &sums) { return weight(sums, query.sort); };
  const auto functions = of.functions(simulation.of_site(), by);
  if (functions.empty())
    return text + no_match_text(query);
  text += misses_text("Which functions miss most often?", "function", functions, simulation, all,
                      query, style, [&](uint32_t place) { return of.function_text(place); });
  text += misses_text("Which instructions?", "instruction",
                      of.instructions(simulation.of_site(), by), simulation, all, query, style,
                      [&](uint32_t place) { return of.instruction_text(place); });
  return text + trace_coverage_text(program, style);
}

Json cache_json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                const CacheSimulation &simulation, const TraceQuery &query) {
  const CacheSums all = simulation.all();
  Json json = trace_head_json(program, "assay.trace-cache/1", "touches of lines");
  json["touches"] = all.touches;
  json["writes"] = all.writes;
  json["threads"] = simulation.threads();
  Json levels = Json::array();
  for (Level level : simulation.levels())
    levels.push_back(level_json(simulation, all, level));
  json["levels"] = std::move(levels);
  json["findings"] = findings_json(analyze::cache_findings(simulation, places));
  TracePlaces of(program, places, query);
  auto by = [&](const CacheSums &sums) { return weight(sums, query.sort); };
  Json functions = Json::array(), instructions = Json::array();
  const auto function_rows = of.functions(simulation.of_site(), by);
  for (size_t i = 0; i < rows_of_json(query, function_rows.size()); i++) {
    functions.push_back(of.function_json(function_rows[i].place));
    put(functions.back(), simulation, function_rows[i].sums, all);
  }
  const auto instruction_rows = of.instructions(simulation.of_site(), by);
  for (size_t i = 0; i < rows_of_json(query, instruction_rows.size()); i++) {
    instructions.push_back(of.instruction_json(instruction_rows[i].place));
    put(instructions.back(), simulation, instruction_rows[i].sums, all);
  }
  json["functions"] = std::move(functions);
  json["instructions"] = std::move(instructions);
  json["notes"] = places.notes();
  return json;
}

} // namespace report
