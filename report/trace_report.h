// The answers of `assay trace`: what a trace holds, and what its accesses tell.
#pragma once

#include "analyze/access_counts.h"
#include "analyze/access_places.h"
#include "analyze/cache_simulation.h"
#include "analyze/miss_ratio_curve.h"
#include "analyze/reuse_distances.h"
#include "analyze/traced_program.h"
#include "report/json.h"
#include "report/table.h"

#include <span>
#include <string>

namespace report {

// Which rows, in which order.
struct TraceQuery {
  unsigned top = 0;   // 0: 10 in text, all in JSON
  std::string sort;   // a key of the question; empty: its first one
  std::string filter; // a regular expression for functions and files
  bool operator==(const TraceQuery &) const = default;
};
// Throws Failure for what is none of the keys, or no regular expression.
void check_query(const TraceQuery &query, std::span<const char *const> keys);

std::span<const char *const> counts_keys();
std::string counts_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                        const analyze::AccessCounts &counts, const TraceQuery &query,
                        const Style &style);
Json counts_json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                 const analyze::AccessCounts &counts, const TraceQuery &query);

std::span<const char *const> cache_keys();
std::string cache_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                       const analyze::CacheSimulation &simulation, const TraceQuery &query,
                       const Style &style);
Json cache_json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                const analyze::CacheSimulation &simulation, const TraceQuery &query);

std::span<const char *const> reuse_keys();
std::string reuse_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                       const analyze::ReuseDistances &distances, const TraceQuery &query,
                       const Style &style);
Json reuse_json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                const analyze::ReuseDistances &distances, const TraceQuery &query);

std::string curve_text(const analyze::TracedProgram &program, const analyze::MissRatioCurve &curve,
                       const Style &style);
Json curve_json(const analyze::TracedProgram &program, const analyze::MissRatioCurve &curve);

// `assay trace info`.
std::string trace_info_text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                            const analyze::AccessCounts &counts, unsigned top);
Json trace_info_json(const analyze::TracedProgram &program, const analyze::AccessPlaces &places,
                     const analyze::AccessCounts &counts);

} // namespace report
