// `assay trace info`: schema assay.trace/1.
//
// A trace is judged by what is in it and what is not. So text has a table of files, the functions
// with most accesses, and then the functions that are not traced, by reason, with three names for
// each; stubs are no surprise and are left out. The accesses of a file are those that stand in its
// code, the accesses of a function are those that were made. JSON has all functions that the trace
// knows.

#include "report/trace_parts.h"

#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace report {
namespace {

using Function = analyze::AccessPlaces::Function;

struct FunctionRow {
  uint32_t number; // in AccessPlaces::functions()
  const Function *function;
  const analyze::TracedModule *module;
  uint64_t accesses = 0;
  std::string name() const {
    return function->linkage_name.empty() ? function->name : function->linkage_name;
  }
  bool is_unexpected() const {
    return function->traced && !function->traced->is_traced && !function->traced->is_stub;
  }
};

// Most accesses first.
std::vector<FunctionRow> rows_of(const analyze::AccessPlaces &places,
                                 const analyze::AccessCounts &counts) {
  std::vector<FunctionRow> rows;
  for (const Function &function : places.functions())
    rows.push_back({static_cast<uint32_t>(rows.size()), &function, &places.module_of(function)});
  for (uint32_t site = 0; site < counts.of_site().size(); site++)
    rows[places.function_of(site)].accesses += counts.of_site()[site].accesses();
  std::sort(rows.begin(), rows.end(), [](const FunctionRow &a, const FunctionRow &b) {
    return std::tuple(b.accesses, a.module->number, a.function->address) <
           std::tuple(a.accesses, b.module->number, b.function->address);
  });
  return rows;
}

struct ModuleSums {
  uint64_t functions = 0, traced = 0, accesses = 0, logged = 0, values = 0;
};

ModuleSums sums_of(const analyze::TracedModule &module) {
  ModuleSums sums;
  for (const analyze::TracedFunction &function : module.functions) {
    if (function.is_stub)
      continue;
    sums.functions++;
    sums.traced += function.is_traced;
    sums.accesses += function.accesses;
    sums.logged += function.logged;
    sums.values += function.values;
  }
  return sums;
}

std::string file_name(const analyze::TracedModule &module) {
  return analyze::base_name(module.path);
}

// "0.37 an access", or "less than 0.01 an access".
std::string per_access(uint64_t count, const char *unit, uint64_t accesses, int digits) {
  const double least = std::pow(10, -digits),
               each = accesses ? double(count) / double(accesses) : 0;
  return count && accesses && each < least / 2
             ? fmt::format("less than {:.{}f}{} an access", least, digits, unit)
             : fmt::format("{:.{}f}{} an access", each, digits, unit);
}

std::string bytes_row(const char *what, uint64_t bytes, uint64_t accesses, int digits) {
  return fmt::format("  {:<9} {:>9}  {}\n", what, base::format_bytes(double(bytes)),
                     per_access(bytes, " bytes", accesses, digits));
}

std::string modules_text(const analyze::TracedProgram &program) {
  std::string text = fmt::format("What is traced?\n  {:>9} {:>9} {:>10} {:>9}  file\n", "functions",
                                 "traced", "sites", "logged");
  for (const analyze::TracedModule &module : program.modules) {
    const ModuleSums sums = sums_of(module);
    text +=
        fmt::format("  {:>9} {:>9} {:>10} {:>9}  {}{}\n", sums.functions, sums.traced,
                    sums.accesses, percent_text(sums.logged, sums.accesses), printable(module.path),
                    module.why_not.empty() ? "" : ": " + printable(module.why_not));
  }
  return text + "  sites: accesses as they stand in the code; logged: the share of them that the "
                "trace has\n";
}

// As a person reads it, with the file.
std::string place_text(const FunctionRow &row, analyze::AccessPlaces &places) {
  return fmt::format("{} in {}", printable(places.named(row.number).name), file_name(*row.module));
}

std::string untraced_text(const std::vector<FunctionRow> &rows, analyze::AccessPlaces &places) {
  std::map<std::string, std::vector<const FunctionRow *>> untraced;
  for (const FunctionRow &row : rows)
    if (row.is_unexpected())
      untraced[row.function->traced->why_not].push_back(&row);
  if (untraced.empty())
    return "";
  std::string text = "\nWhich functions are not traced, and why?\n";
  for (const auto &[why, functions] : untraced) {
    text += fmt::format("  {:>6}  {}\n", functions.size(), why);
    for (size_t i = 0; i < functions.size() && i < 3; i++)
      text += fmt::format("          {}\n", place_text(*functions[i], places));
  }
  return text;
}

} // namespace

std::string trace_info_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                            const analyze::AccessCounts &counts, unsigned top) {
  const analyze::AccessSums all = counts.all();
  std::string text = trace_head_text(program, "trace", Style());
  text += fmt::format("  accesses  {:>9}  {}, {}, {}\n", count_text(all.accesses()),
                      base::format_counted(double(all.reads()), "read"),
                      base::format_counted(double(all.writes()), "write"),
                      base::with_noun(counts.of_thread().size(), "thread"));
  text += fmt::format("  from      {:>9}  {}, {}; {}\n", count_text(program.values),
                      program.values == 1 ? "value" : "values",
                      base::format_counted(double(program.branches), "branch", "branches"),
                      per_access(program.values + program.branches, "", all.accesses(), 3));
  text += bytes_row("logged", program.logged_bytes, all.accesses(), 2);
  text += bytes_row("stored", program.stored_bytes, all.accesses(), 3);
  text += "            compressed, with what the code of each file logs\n";
  text += "\n" + modules_text(program);
  const std::vector<FunctionRow> rows = rows_of(places, counts);
  text += fmt::format("\nWhich functions access memory most often?\n  {:>9} {:>6}  function\n",
                      "accesses", "share");
  for (size_t i = 0; i < rows.size() && i < top && rows[i].accesses; i++)
    text +=
        fmt::format("  {:>9} {:>6}  {}\n", count_text(rows[i].accesses),
                    percent_text(rows[i].accesses, all.accesses()), place_text(rows[i], places));
  return text + untraced_text(rows, places);
}

Json trace_info_json(const analyze::TracedProgram &program, const analyze::AccessPlaces &places,
                     const analyze::AccessCounts &counts) {
  Json modules = Json::array(), functions = Json::array();
  ModuleSums all_modules;
  for (const analyze::TracedModule &module : program.modules) {
    const ModuleSums sums = sums_of(module);
    all_modules.logged += sums.logged;
    all_modules.values += sums.values;
    modules.push_back({{"path", module.path},
                       {"is_traced", module.is_traced},
                       {"why_not", module.why_not.empty() ? Json() : Json(module.why_not)},
                       {"function_count", sums.functions},
                       {"traced_function_count", sums.traced},
                       {"access_count", sums.accesses},
                       {"logged_access_count", sums.logged}});
  }
  for (const FunctionRow &row : rows_of(places, counts)) {
    if (!row.function->traced)
      continue;
    const analyze::TracedFunction &function = *row.function->traced;
    functions.push_back({{"name", row.name()},
                         {"file", row.module->path},
                         {"address", fmt::format("{:#x}", function.address)},
                         {"understood", function.is_traced},
                         {"why_not", function.is_traced ? Json() : Json(function.why_not)},
                         {"accesses", row.accesses}});
  }
  const analyze::AccessSums all = counts.all();
  Json json = trace_head_json(program, "assay.trace/1", "accesses");
  json["modules"] = std::move(modules);
  json["functions"] = std::move(functions);
  json["accesses"] = all.accesses();
  json["reads"] = all.reads();
  json["writes"] = all.writes();
  json["values"] = program.values;
  json["branches"] = program.branches;
  json["dynamic_ratio"] =
      all.accesses() ? Json(double(program.values + program.branches) / double(all.accesses()))
                     : Json();
  json["bytes"] = program.logged_bytes;
  json["stored_bytes"] = program.stored_bytes;
  json["static_ratio"] =
      all_modules.logged ? Json(double(all_modules.values) / double(all_modules.logged)) : Json();
  json["has_ended"] = program.has_ended;
  json["damage"] = program.damage.empty() ? Json() : Json(program.damage);
  return json;
}

} // namespace report
