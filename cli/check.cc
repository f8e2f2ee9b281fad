// `assay check [PROFILE…] --fail-if EXPR`: a verdict for CI. Exit status 0: no condition holds; 1: one does,
// or something grew more than it may; 2: the question makes no sense.

#include "analyze/heap.h"
#include "base/fail.h"
#include "cli/command.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"
#include "report/condition.h"
#include "report/heap_report.h"

#include <fmt/format.h>

#include <iterator>
#include <memory>

namespace cli {
namespace {

struct CheckArguments {
  std::vector<std::string> profiles, fail_if;
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

analyze::HeapResult result_of(const std::vector<std::string> &files) {
  profile::Profile profile = profile::read(files);
  image::Symbols symbols = image::open(analyze::module_files(profile));
  return analyze::heap(profile, symbols, {});
}

int check(const CheckArguments &arguments) {
  if (arguments.fail_if.empty() && arguments.baseline.empty())
    base::fail(
        "check: nothing to check; write --fail-if 'totals.peak_bytes > 64MiB' or --baseline OLD");
  std::vector<report::Condition> conditions;
  conditions.reserve(arguments.fail_if.size());
  for (const std::string &text : arguments.fail_if)
    conditions.push_back(report::parse_condition(text));
  analyze::HeapResult now = result_of(profile::find_profiles(arguments.profiles));
  report::Document report = report::heap_document(now, 0, "");
  bool failed = false;
  for (const report::Condition &condition : conditions)
    if (std::optional<double> number = report::holds(condition, report)) {
      fmt::print("failed: {} (it is {})\n", condition.text, *number);
      failed = true;
    }
  if (!arguments.baseline.empty()) {
    double allowed = report::parse_condition("growth > " + arguments.max_growth).number;
    analyze::HeapResult old = result_of(profile::find_profiles({arguments.baseline}));
    report::Document old_report = report::heap_document(old, 0, "");
    std::vector<std::string> paths(std::begin(kGrowth), std::end(kGrowth));
    for (std::string &path : accesses_of(old, now))
      paths.push_back(std::move(path));
    for (const std::string &path : paths) {
      double before = report::numbers_at(old_report, path).front(),
             after = report::numbers_at(report, path).front();
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
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--baseline", arguments->baseline, "profile or run to compare with");
  app.add_option("--max-growth", arguments->max_growth,
                 "how much more than the baseline is allowed (5%)");
  app.footer(
      "\nExamples:\n  assay check --fail-if 'totals.peak_bytes > 64GiB'\n  assay check --fail-if "
      "'contexts[type=Node].used_share < 10%' --fail-if 'len(losses) > 100'\n");
  return [arguments](const Words &) { return check(*arguments); };
}

} // namespace cli
