// `assay check [PROFILE…] --fail-if EXPR`: a verdict for CI. Exit status 0: no condition holds; 1: one does,
// or something grew more than it may; 2: the question makes no sense.

#include "analyze/heap.h"
#include "analyze/measured.h"
#include "analyze/working_set.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"
#include "report/condition.h"
#include "report/heap_report.h"
#include "report/working_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>

namespace cli {
namespace {

struct CheckArguments {
  std::vector<std::string> profiles, fail_if, wrappers;
  std::string baseline, max_growth = "5%";
};

// What must not grow against a baseline: amounts that a program asks for, not times.
constexpr const char *kGrowth[] = {"totals.alloc_count", "totals.size.total", "totals.peak_bytes",
                                   "totals.live_bytes"};

// The accesses that both reports state: loads and stores apart, if both tell them apart.
std::vector<std::string> accesses_of(const analyze::HeapResult &old,
                                     const analyze::HeapResult &now) {
  if (old.reads_apart && now.reads_apart)
    return {"totals.reads", "totals.writes"};
  return {"totals.access_count.total"};
}

// The same of a working set. How much is touched at a time depends, on a clock of time, on the machine.
std::vector<std::string> working_set_growth(const analyze::WorkingSetResult &old,
                                            const analyze::WorkingSetResult &now) {
  auto counts = [](uint32_t unit) {
    return unit == ASSAY_TIME_ACCESSES || unit == ASSAY_TIME_MARKS;
  };
  if (old.unit == now.unit && counts(now.unit))
    return {"workingset.mean_bytes", "workingset.largest_bytes", "workingset.total_bytes"};
  return {"workingset.total_bytes"};
}

// What a profile says, and the document on which conditions are judged.
struct Report {
  bool has_heap = false;
  analyze::HeapResult heap;
  std::vector<analyze::WorkingSetResult> working_sets;
  std::string why_no_working_sets;
  report::Document document;

  // The working set is in the document where it is asked for: it has each snapshot.
  Report(const std::vector<std::string> &files, bool with_working_set,
         const analyze::Wrappers &wrappers) {
    profile::Profile profile = profile::read(files);
    image::Symbols symbols = image::open(analyze::module_files(profile));
    has_heap = analyze::measured(profile, ASSAY_TOOL_heap);
    heap = analyze::heap(profile, symbols, {"", {}, wrappers});
    document = report::heap_document(heap, 0, "");
    if (with_working_set) {
      analyze::WorkingSetQuery query;
      query.wrappers = wrappers;
      working_sets = analyze::working_sets(profile, symbols, query);
    }
    if (working_sets.empty())
      why_no_working_sets = analyze::why_no_working_sets(profile);
    else // of the program that was started
      document.put("workingset", report::working_set_document(working_sets.front(), 0));
  }
  Report(const Report &) = delete; // the document refers to the results
  Report &operator=(const Report &) = delete;
};

// Whether a condition's path begins with one of these keys.
bool is_about(const report::Condition &condition, std::initializer_list<const char *> keys) {
  std::string path = condition.path.substr(condition.path.starts_with("len(") ? 4 : 0);
  std::string key = path.substr(0, path.find_first_of(".[)"));
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_about_working_set(const report::Condition &condition) {
  return is_about(condition, {"workingset"});
}

bool is_about_heap(const report::Condition &condition) {
  return is_about(condition, {"totals", "contexts", "sites", "types", "modules"});
}

int check(const CheckArguments &arguments) {
  if (arguments.fail_if.empty() && arguments.baseline.empty())
    base::fail(
        "check: nothing to check; write --fail-if 'totals.peak_bytes > 64MiB' or --baseline OLD");
  std::vector<report::Condition> conditions;
  conditions.reserve(arguments.fail_if.size());
  for (const std::string &text : arguments.fail_if)
    conditions.push_back(report::parse_condition(text));
  bool asked = std::any_of(conditions.begin(), conditions.end(), is_about_working_set);
  analyze::Wrappers wrappers(arguments.wrappers);
  Report now(profile::find_profiles(arguments.profiles), asked || !arguments.baseline.empty(),
             wrappers);
  if (asked && now.working_sets.empty())
    base::fail("check: {}", now.why_no_working_sets);
  if (!now.has_heap && std::any_of(conditions.begin(), conditions.end(), is_about_heap))
    base::fail("check: the heap was not measured in this profile; build the program with "
               "-fassay=heap,workingset, and run it again");
  bool failed = false;
  for (const report::Condition &condition : conditions)
    if (std::optional<double> number = report::holds(condition, now.document)) {
      fmt::print("failed: {} (it is {})\n", condition.text, *number);
      failed = true;
    }
  if (!arguments.baseline.empty()) {
    double allowed = report::parse_condition("growth > " + arguments.max_growth).number;
    Report old(profile::find_profiles({arguments.baseline}), true, wrappers);
    std::vector<std::string> paths(std::begin(kGrowth), std::end(kGrowth));
    for (std::string &path : accesses_of(old.heap, now.heap))
      paths.push_back(std::move(path));
    if (!old.working_sets.empty() && !now.working_sets.empty())
      for (std::string &path :
           working_set_growth(old.working_sets.front(), now.working_sets.front()))
        paths.push_back(std::move(path));
    for (const std::string &path : paths) {
      double before = report::numbers_at(old.document, path).front(),
             after = report::numbers_at(now.document, path).front();
      if (after > before * (1 + allowed)) {
        fmt::print("failed: {} grew from {} to {}, by more than {}\n", path, before, after,
                   arguments.max_growth);
        failed = true;
      }
    }
  }
  if (!failed)
    fmt::print("passed\n");
  return failed ? 1 : 0;
}

} // namespace

Action define_check(CLI::App &app) {
  auto arguments = std::make_shared<CheckArguments>();
  app.add_option("profiles", arguments->profiles,
                 "profiles or folders of runs; the latest run if none is named");
  app.add_option("--fail-if", arguments->fail_if,
                 "PATH OP NUMBER[unit] on the JSON report; may be given several times")
      ->allow_extra_args(false); // what follows is a profile
  app.add_option("--baseline", arguments->baseline, "profile or run to compare with");
  app.add_option("--max-growth", arguments->max_growth,
                 "how much more than the baseline is allowed (5%)");
  add_wrapper_option(app, arguments->wrappers);
  app.footer(
      "\nExamples:\n  assay check --fail-if 'totals.peak_bytes > 64GiB'\n  assay check --fail-if "
      "'contexts[type=Node].used_share < 10%' --fail-if 'len(losses) > 100'\n  assay check "
      "--fail-if "
      "'workingset.largest_bytes > 8MiB' --fail-if 'workingset.caches[L2].fits_share < 90%'\n");
  return [arguments](const Words &) { return check(*arguments); };
}

} // namespace cli
