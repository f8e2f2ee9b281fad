// The analyses of accesses that `assay trace` has: `assay trace counts|cache|reuse|mrc` of a trace,
// `assay trace run --analysis …` of a program that runs.
#pragma once

#include "analyze/access_places.h"
#include "cli/command.h"
#include "report/trace_report.h"

#include <memory>
#include <string>
#include <vector>

namespace cli {

struct CacheOptions {
  std::string l1 = "32KiB,8,64", l2 = "1MiB,16", llc = "32MiB,16"; // "none" but for the first
  std::string tlb = "64,4", l2_tlb = "1536,12", page = "4KiB";
  bool operator==(const CacheOptions &) const = default;
};

struct CurveOptions {
  std::string samples = "32768";
  bool is_exact = false;
  bool operator==(const CurveOptions &) const = default;
};

// What users say of all analyses.
struct AnalysisOptions {
  report::TraceQuery query;
  CacheOptions cache;
  CurveOptions curve;
};

// One that takes accesses, and answers when there are no more.
class Analysis {
public:
  virtual ~Analysis() = default;
  virtual profile::AccessSink &sink() = 0;
  virtual std::string text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                           const report::TraceQuery &query, const report::Style &style) = 0;
  virtual report::Json json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                            const report::TraceQuery &query) = 0;
};

struct AnalysisKind {
  const char *name, *question, *examples;
  bool has_rows;      // --top, --sort and --filter choose among them
  bool asks_of_order; // the answer depends on the order of accesses
  std::span<const char *const> (*keys)();
  void (*add_options)(CommandLine line, AnalysisOptions &options);
  std::unique_ptr<Analysis> (*make)(const AnalysisOptions &options); // throws Failure
};

const std::vector<AnalysisKind> &analysis_kinds();
// Throws Failure if there is none of that name.
const AnalysisKind &analysis_kind(const std::string &name);

// Throws Failure if an option says something of an analysis that is not among these: it would change nothing.
void check_options(const AnalysisOptions &options, const std::vector<const AnalysisKind *> &chosen);

// Declares --top, --sort and --filter.
void add_query_options(CommandLine line, AnalysisOptions &options, const std::string &keys);

} // namespace cli
