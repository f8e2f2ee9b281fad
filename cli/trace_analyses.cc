// The same analyses are made of a stored trace and of a program that runs. So an analysis is a sink
// for accesses with two reports, text and JSON, and a row in one table: name, question, options,
// and what makes it. The classes here only put these together; the work is in analyze/ and report/.
//
// Options stay texts until an analysis is made, because a level may be "none"; so what is wrong is
// said only to who asks for that analysis.

#include "cli/trace_analyses.h"

#include "base/fail.h"
#include "base/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace cli {
namespace {

class Counts : public Analysis {
public:
  profile::AccessSink &sink() override { return counts_; }
  std::string text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                   const report::TraceQuery &query, const report::Style &style) override {
    return report::counts_text(program, places, counts_, query, style);
  }
  report::Json json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                    const report::TraceQuery &query) override {
    return report::counts_json(program, places, counts_, query);
  }

private:
  analyze::AccessCounts counts_;
};

class Caches : public Analysis {
public:
  explicit Caches(const analyze::CacheSettings &settings) : simulation_(settings) {}
  profile::AccessSink &sink() override { return simulation_; }
  std::string text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                   const report::TraceQuery &query, const report::Style &style) override {
    return report::cache_text(program, places, simulation_, query, style);
  }
  report::Json json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                    const report::TraceQuery &query) override {
    return report::cache_json(program, places, simulation_, query);
  }

private:
  analyze::CacheSimulation simulation_;
};

class Reuse : public Analysis {
public:
  profile::AccessSink &sink() override { return distances_; }
  std::string text(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                   const report::TraceQuery &query, const report::Style &style) override {
    return report::reuse_text(program, places, distances_, query, style);
  }
  report::Json json(const analyze::TracedProgram &program, analyze::AccessPlaces &places,
                    const report::TraceQuery &query) override {
    return report::reuse_json(program, places, distances_, query);
  }

private:
  analyze::ReuseDistances distances_;
};

// Of all lines if `samples` is 0, else of so many.
class Curve : public Analysis {
public:
  explicit Curve(uint64_t samples) : exact_(false), sampled_(samples), is_exact_(samples == 0) {}
  profile::AccessSink &sink() override {
    if (is_exact_)
      return exact_;
    return sampled_;
  }
  std::string text(const analyze::TracedProgram &program, analyze::AccessPlaces &,
                   const report::TraceQuery &, const report::Style &style) override {
    return report::curve_text(program, curve(), style);
  }
  report::Json json(const analyze::TracedProgram &program, analyze::AccessPlaces &,
                    const report::TraceQuery &) override {
    return report::curve_json(program, curve());
  }

private:
  analyze::MissRatioCurve curve() const {
    return is_exact_ ? analyze::exact_curve(exact_) : sampled_.curve();
  }
  analyze::ReuseDistances exact_;
  analyze::SampledCurve sampled_;
  const bool is_exact_;
};

analyze::CacheSettings cache_settings(const CacheOptions &options) {
  analyze::CacheSettings settings;
  settings.l1 = analyze::parse_cache_shape(options.l1, "--l1");
  // Levels behind the first have its lines, unless they say otherwise.
  auto behind = [&](const std::string &text,
                    const char *option) -> std::optional<analyze::CacheShape> {
    if (text == "none")
      return std::nullopt;
    analyze::CacheShape shape = analyze::parse_cache_shape(text, option);
    if (std::count(text.begin(), text.end(), ',') == 1)
      shape =
          analyze::parse_cache_shape(fmt::format("{},{}", text, settings.l1.line_bytes), option);
    return shape;
  };
  settings.l2 = behind(options.l2, "--l2");
  settings.llc = behind(options.llc, "--llc");
  settings.tlb = analyze::parse_tlb_shape(options.tlb, "--tlb");
  settings.l2_tlb = options.l2_tlb == "none"
                        ? std::nullopt
                        : std::optional(analyze::parse_tlb_shape(options.l2_tlb, "--l2-tlb"));
  settings.page_bytes = base::parse_bytes(options.page, "--page");
  analyze::check(settings);
  return settings;
}

uint64_t samples_of(const CurveOptions &options) {
  const uint64_t samples = base::parse_count(options.samples, "--samples");
  if (samples < 64 || samples > uint64_t{1} << 28)
    base::fail("--samples {}: choose 64 to 256M lines", options.samples);
  return options.is_exact ? 0 : samples;
}

void add_cache_options(CommandLine line, AnalysisOptions &options) {
  line.add_option("--l1", options.cache.l1,
                  "level 1 of each thread: SIZE,WAYS or SIZE,WAYS,LINE; any number of sets")
      .shows_default();
  line.add_option("--l2", options.cache.l2, "level 2 of each thread, or none").shows_default();
  line.add_option("--llc", options.cache.llc, "the last level, which all threads share, or none")
      .shows_default();
  line.add_option("--tlb", options.cache.tlb, "TLB of each thread: ENTRIES,WAYS").shows_default();
  line.add_option("--l2-tlb", options.cache.l2_tlb, "its second level, or none").shows_default();
  line.add_option("--page", options.cache.page, "size of a page: a power of two from 1KiB to 1GiB")
      .shows_default();
}

void add_curve_options(CommandLine line, AnalysisOptions &options) {
  line.add_option("--samples", options.curve.samples, "lines that are followed at once")
      .shows_default();
  line.add_flag("--exact", options.curve.is_exact,
                "follow all lines, in memory that grows with them");
}

void add_nothing(CommandLine, AnalysisOptions &) {}

std::span<const char *const> no_keys() {
  return {};
}

} // namespace

const std::vector<AnalysisKind> &analysis_kinds() {
  static const std::vector<AnalysisKind> kinds = {
      {.name = "counts",
       .question = "how often does each instruction access memory, and how much memory is it?",
       .examples =
           "  assay trace counts --top 5\n  assay trace counts --sort bytes --filter libc DIR\n",
       .has_rows = true,
       .asks_of_order = false,
       .keys = report::counts_keys,
       .add_options = add_nothing,
       .make = [](const AnalysisOptions &) -> std::unique_ptr<Analysis> {
         return std::make_unique<Counts>();
       }},
      {.name = "cache",
       .question = "how often would caches and TLBs miss, and where?",
       .examples = "  assay trace cache --top 5\n  assay trace cache --l1 48KiB,12 --l2 2MiB,16 "
                   "--page 2MiB DIR\n",
       .has_rows = true,
       .asks_of_order = true,
       .keys = report::cache_keys,
       .add_options = add_cache_options,
       .make = [](const AnalysisOptions &options) -> std::unique_ptr<Analysis> {
         return std::make_unique<Caches>(cache_settings(options.cache));
       }},
      {.name = "reuse",
       .question = "how many other lines are touched before a line is touched again?",
       .examples = "  assay trace reuse --top 5\n  assay trace reuse --sort far DIR\n",
       .has_rows = true,
       .asks_of_order = true,
       .keys = report::reuse_keys,
       .add_options = add_nothing,
       .make = [](const AnalysisOptions &) -> std::unique_ptr<Analysis> {
         return std::make_unique<Reuse>();
       }},
      {.name = "mrc",
       .question = "which share of touches would a cache of each size miss?",
       .examples = "  assay trace mrc\n  assay trace mrc --exact --json DIR\n",
       .has_rows = false,
       .asks_of_order = true,
       .keys = no_keys,
       .add_options = add_curve_options,
       .make = [](const AnalysisOptions &options) -> std::unique_ptr<Analysis> {
         return std::make_unique<Curve>(samples_of(options.curve));
       }}};
  return kinds;
}

const AnalysisKind &analysis_kind(const std::string &name) {
  std::string names;
  for (const AnalysisKind &kind : analysis_kinds()) {
    if (kind.name == name)
      return kind;
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  base::fail("--analysis {}: there is no such analysis; there are {}", name, names);
}

void check_options(const AnalysisOptions &options,
                   const std::vector<const AnalysisKind *> &chosen) {
  const auto is_chosen = [&](const char *name) {
    return std::ranges::any_of(
        chosen, [&](const AnalysisKind *kind) { return kind->name == std::string_view(name); });
  };
  if (!is_chosen("cache") && options.cache != CacheOptions())
    base::fail("trace run: options that describe caches say nothing here; add cache to --analysis, "
               "or leave them out");
  if (!is_chosen("mrc") && options.curve != CurveOptions())
    base::fail("trace run: --samples and --exact are of the analysis mrc; add it to --analysis, or "
               "leave them out");
  const bool has_rows =
      std::ranges::any_of(chosen, [](const AnalysisKind *kind) { return kind->has_rows; });
  if (!has_rows && options.query != report::TraceQuery())
    base::fail(
        "trace run: --top, --sort and --filter choose rows, and mrc has none; leave them out");
}

void add_query_options(CommandLine line, AnalysisOptions &options, const std::string &keys) {
  line.add_option("--top", options.query.top,
                  "rows of each table (10), of each list in JSON (all)");
  if (!keys.empty())
    line.add_option("--sort", options.query.sort, "rows in the order of this key: " + keys);
  line.add_option("--filter", options.query.filter,
                  "only functions with a name or file that matches this regular expression")
      .may_be_empty();
}

} // namespace cli
