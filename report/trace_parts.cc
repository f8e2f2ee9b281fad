// The answers on a trace must say the same of what they do not know: so the head, the losses and
// the coverage are made here for all of them, as text and as JSON.
//
// Coverage is a share of the functions and accesses that stand in the files, not of those that were
// executed: what untraced code has executed is not known. Stubs of the procedure linkage table are
// not counted. Where all functions are traced, the text says nothing.
//
// To filter, names of all rows are needed; source lines are read only for rows that are shown.

#include "report/trace_parts.h"

#include "abi/trace_ring.h"
#include "analyze/place.h"
#include "base/sort_key.h"
#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

struct Coverage {
  uint64_t functions = 0, traced = 0, accesses = 0, logged = 0;
};

Coverage coverage_of(const analyze::TracedProgram &program) {
  Coverage coverage;
  for (const analyze::TracedModule &module : program.modules)
    for (const analyze::TracedFunction &function : module.functions) {
      if (function.is_stub)
        continue;
      coverage.functions++;
      coverage.traced += function.is_traced;
      coverage.accesses += function.accesses;
      coverage.logged += function.logged;
    }
  return coverage;
}

std::string partial_text(const analyze::TracedProgram &program) {
  return printable(
      fmt::format("only parts of the run were recorded: {}", fmt::join(program.parts, " ")));
}

std::string line_text(const analyze::AccessPlaces::Line &line) {
  return line.line ? fmt::format(" {}:{}", analyze::base_name(line.file), line.line) : "";
}

} // namespace

void check_query(const TraceQuery &query, std::span<const char *const> keys) {
  const analyze::TextFilter is_valid(query.filter);
  (void)is_valid;
  if (!query.sort.empty())
    base::chosen_order(keys, query.sort, [](const char *key) { return key; });
}

std::string trace_head_text(const analyze::TracedProgram &program, const char *question,
                            const Style &style) {
  std::string text =
      style.strong(fmt::format("assay {}:", question)) + " " + command_text(program.command) + "\n";
  if (!program.damage.empty())
    text += "  " + printable(program.damage) + "\n";
  if (!program.parts.empty())
    text += "  " + partial_text(program) + "\n";
  if (!program.has_ended)
    text += "  the recording did not end: what was logged until then is here\n";
  else if (program.untraced_threads)
    text += fmt::format("  {} missing: more than {} ran at once\n",
                        base::with_noun(program.untraced_threads, "thread or handler is",
                                        "threads or handlers are"),
                        ASSAY_RING_STREAMS);
  return text;
}

std::string no_accesses_text(const analyze::TracedProgram &program) {
  if (!program.damage.empty())
    return "  no accesses: what is left of the trace has none\n";
  if (!program.has_ended || !program.parts.empty())
    return "  no accesses: in what was recorded, nothing that is traced has run\n";
  return "  no accesses: nothing was logged (`--log nothing`), or nothing that was traced has run; "
         "`assay trace info` says what is not traced, and why\n";
}

std::string no_match_text(const TraceQuery &query) {
  return fmt::format("\n  --filter '{}' matches no function that accesses memory\n",
                     printable(query.filter));
}

std::string trace_coverage_text(const analyze::TracedProgram &program, const Style &style) {
  const Coverage coverage = coverage_of(program);
  if (coverage.traced == coverage.functions)
    return "";
  return "\n" +
         style.faint(fmt::format("  Of {}, {}: assay trace info",
                                 base::format_counted(double(coverage.functions), "function"),
                                 base::format_counted(double(coverage.functions - coverage.traced),
                                                      "is not traced, with a reason",
                                                      "are not traced, each with a reason"))) +
         "\n";
}

Json trace_coverage_json(const analyze::TracedProgram &program) {
  const Coverage coverage = coverage_of(program);
  return {{"function_count", coverage.functions},
          {"traced_function_count", coverage.traced},
          {"traced_function_share", share_of(coverage.traced, coverage.functions)},
          {"access_count", coverage.accesses},
          {"logged_access_count", coverage.logged},
          {"logged_access_share", share_of(coverage.logged, coverage.accesses)}};
}

Json trace_head_json(const analyze::TracedProgram &program, const char *schema, const char *unit) {
  const bool is_empty = program.command.empty();
  Json losses = Json::array();
  if (program.untraced_threads)
    losses.push_back({{"kind", "untraced_threads"},
                      {"count", program.untraced_threads},
                      {"why", fmt::format("more than {} threads and handlers ran at once",
                                          ASSAY_RING_STREAMS)}});
  if (!program.parts.empty())
    losses.push_back({{"kind", "partial"}, {"count", 1}, {"why", partial_text(program)}});
  if (!program.has_ended)
    losses.push_back({{"kind", "not_ended"},
                      {"count", 1},
                      {"why", "the recording did not end: what was logged until then is here"}});
  if (!program.damage.empty())
    losses.push_back({{"kind", "damage"}, {"count", 1}, {"why", program.damage}});
  return {{"schema", schema},
          {"program",
           {{"path", is_empty ? "" : program.command.front()},
            {"arguments", program.command},
            {"build_id", analyze::program_build_id(program)}}},
          {"unit", unit},
          {"losses", losses},
          {"coverage", trace_coverage_json(program)}};
}

double share_of(uint64_t part, uint64_t all) {
  return all ? double(part) / double(all) : 0;
}

std::string count_text(uint64_t count) {
  return base::format_count(double(count));
}

std::string percent_text(uint64_t part, uint64_t all) {
  return all ? fmt::format("{:.1f} %", 100 * share_of(part, all)) : "-";
}

size_t rows_of_text(const TraceQuery &query, size_t rows) {
  return std::min<size_t>(query.top ? query.top : 10, rows);
}

size_t rows_of_json(const TraceQuery &query, size_t rows) {
  return shown(rows, query.top);
}

bool TracePlaces::keeps(uint32_t function) {
  const auto &of = places_.named(function);
  return filter_.keeps(of.name) || filter_.keeps(places_.module_of(of).path);
}

PlaceText TracePlaces::function_text(uint32_t function) {
  const auto &of = places_.named(function);
  const std::string line = line_text(places_.line_of(of));
  return {analyze::short_name(of.name),
          line.empty() ? " in " + analyze::base_name(places_.module_of(of).path) : line};
}

PlaceText TracePlaces::instruction_text(uint32_t site) {
  const auto &of = places_.named(places_.function_of(site));
  return {analyze::short_name(of.name),
          fmt::format("{}, {:#x} in {}", line_text(places_.line_of(site)),
                      program_.sites[site].offset, analyze::base_name(places_.module_of(of).path))};
}

Json TracePlaces::frame_json(const analyze::AccessPlaces::Function &function, uint64_t address,
                             const analyze::AccessPlaces::Line &line) {
  return {{"function", function.name},
          {"linkage_name", function.linkage_name},
          {"file", line.file},
          {"line", line.line},
          {"module", places_.module_of(function).path},
          {"address", fmt::format("{:#x}", address)}};
}

Json TracePlaces::function_json(uint32_t function) {
  const auto &of = places_.named(function);
  return frame_json(of, of.address, places_.line_of(of));
}

Json TracePlaces::instruction_json(uint32_t site) {
  return frame_json(places_.named(places_.function_of(site)), program_.sites[site].offset,
                    places_.line_of(site));
}

} // namespace report
