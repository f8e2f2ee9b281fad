// Parts that the answers of `assay trace` share: heads, coverage, rows by place.
#pragma once

#include "analyze/access_places.h"
#include "analyze/regular_expression.h"
#include "base/stable_sort.h"
#include "report/trace_report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace report {

// "assay trace counts: ./app", and what is wrong with the trace.
std::string trace_head_text(const analyze::TracedProgram &program, const char *question,
                            const Style &style);
// Instead of tables without rows.
std::string no_accesses_text(const analyze::TracedProgram &program);
// Where the filter leaves nothing.
std::string no_match_text(const TraceQuery &query);
// What is not in it.
std::string trace_coverage_text(const analyze::TracedProgram &program, const Style &style);
// Keys of every document: schema, program, unit, losses, coverage.
Json trace_head_json(const analyze::TracedProgram &program, const char *schema, const char *unit);
Json trace_coverage_json(const analyze::TracedProgram &program);

double share_of(uint64_t part, uint64_t all);
std::string count_text(uint64_t count);
std::string percent_text(uint64_t part, uint64_t all); // "12.3 %", "-" of nothing

// In a table the name may be shortened, where it is may not.
struct PlaceText {
  std::string name, where; // "sum" and " sums.c:12, 0x4abe in sums"
};

// Names of places, and the rows of a query.
class TracePlaces {
public:
  TracePlaces(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
              const TraceQuery &query)
      : program_(program), places_(places), filter_(query.filter) {}

  // Rows that the filter keeps, the largest `weight(sums)` first.
  template <class Sums, class Weight>
  std::vector<analyze::PlaceSums<Sums>> functions(const std::vector<Sums> &of_site, Weight weight) {
    auto rows = analyze::sums_by(of_site, places_.functions().size(),
                                 [&](uint32_t site) { return places_.function_of(site); });
    std::erase_if(rows, [&](const auto &row) { return !keeps(row.place); });
    sort(rows, weight);
    return rows;
  }
  template <class Sums, class Weight>
  std::vector<analyze::PlaceSums<Sums>> instructions(const std::vector<Sums> &of_site,
                                                     Weight weight) {
    auto rows =
        analyze::sums_by(of_site, program_.sites.size(), [](uint32_t site) { return site; });
    std::erase_if(rows, [&](const auto &row) { return !keeps(places_.function_of(row.place)); });
    sort(rows, weight);
    return rows;
  }
  template <class Sums, class Weight>
  std::vector<analyze::PlaceSums<Sums>> modules(const std::vector<Sums> &of_site, Weight weight) {
    auto rows = analyze::sums_by(of_site, program_.modules.size(), [&](uint32_t site) {
      return places_.functions()[places_.function_of(site)].module;
    });
    std::erase_if(
        rows, [&](const auto &row) { return !filter_.keeps(program_.modules[row.place].path); });
    sort(rows, weight);
    return rows;
  }

  PlaceText function_text(uint32_t function);
  PlaceText instruction_text(uint32_t site);
  const std::string &module_text(uint32_t module) const { return program_.modules[module].path; }
  // Keys of a frame.
  Json function_json(uint32_t function);
  Json instruction_json(uint32_t site);

private:
  template <class Rows, class Weight> static void sort(Rows &rows, Weight weight) {
    base::stable_sort(
        rows, [&](const auto &a, const auto &b) { return weight(a.sums) > weight(b.sums); });
  }
  bool keeps(uint32_t function);
  Json frame_json(const analyze::AccessPlaces::Function &function, uint64_t address,
                  const analyze::AccessPlaces::Line &line);

  const analyze::TracedProgram &program_;
  analyze::AccessPlaces &places_;
  analyze::TextFilter filter_;
};

// How many of so many rows are to be shown.
size_t rows_of_text(const TraceQuery &query, size_t rows);
size_t rows_of_json(const TraceQuery &query, size_t rows);

} // namespace report
