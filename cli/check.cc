// `assay check [PROFILE…] --fail-if EXPR`: a verdict for CI. Exit status 0: no condition holds; 1: one does,
// or something grew more than it may; 2: the question makes no sense.

#include "abi/tools.h"
#include "analyze/finding.h"
#include "analyze/frame.h"
#include "analyze/measured.h"
#include "base/fail.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/tool.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"
#include "report/condition.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace cli {
namespace {

struct CheckArguments {
  std::vector<std::string> profiles, fail_if, wrappers;
  std::string baseline, max_growth = "5%";
  bool require_match = false, allow_incomplete = false;
};

// The key at the top of a condition's path.
std::string top_key(const report::Condition &condition) {
  std::string path = condition.path.substr(condition.path.starts_with("len(") ? 4 : 0);
  return path.substr(0, path.find_first_of(".[)"));
}

// What a profile says, and the document on which conditions are judged.
struct Report {
  std::map<const Tool *, std::unique_ptr<ToolAnswer>> answers;
  std::map<const Tool *, std::string> why_none; // of tools that were asked in vain
  report::Document document;
  std::map<uint32_t, uint64_t> general_losses;
  std::set<std::string> programs; // names of their files
  size_t running;                 // processes that still write

  // Of the tools that `wanted` has, and of those that a program has by default.
  Report(const std::vector<std::string> &files, const std::set<const Tool *> &wanted,
         const analyze::Wrappers &wrappers) {
    profile::Profile profile = profile::read(files);
    general_losses = analyze::general_losses(profile.losses);
    programs = analyze::program_file_names(profile);
    running = profile.notes.running;
    image::Symbols symbols = image::open(analyze::module_files(profile));
    for (const Tool *tool : tools()) {
      if (!wanted.count(tool) && !(tool->bit & ASSAY_DEFAULT_TOOLS))
        continue;
      auto answer = tool->answer(profile, symbols, {"", wrappers, false});
      if (!answer || !analyze::measured(profile, tool->bit))
        why_none[tool] = tool->why_none(profile);
      if (!answer)
        continue;
      answer->put(document);
      answers[tool] = std::move(answer);
    }
  }
  Report(const Report &) = delete; // the document refers to the answers
  Report &operator=(const Report &) = delete;

  bool has_measured(const Tool *tool) const { return answers.count(tool) && !why_none.count(tool); }
};

// Lines, one for each failure; none: the profile passes.
using Verdict = std::string;

// What does not judge the profile but leaves something unjudged.
Verdict unjudged(const CheckArguments &arguments, const std::string &what) {
  if (arguments.require_match)
    return fmt::format("failed: {}\n", what);
  fmt::print(stderr, "assay: check: {}, so it cannot fail; --require-match makes that a failure\n",
             what);
  return "";
}

// What grew by more than the allowed share.
Verdict grown(const Report &old, const Report &now, const CheckArguments &arguments) {
  const double allowed = base::parse_growth(arguments.max_growth, "--max-growth");
  Verdict verdict;
  bool any_common = false;
  for (const Tool *tool : tools())
    any_common |= old.has_measured(tool) && now.has_measured(tool);
  if (!any_common)
    base::fail("check: {} has nothing that the profile has, too; measure both with the same tools",
               arguments.baseline);
  for (const Tool *tool : tools()) {
    if (old.has_measured(tool) && !now.has_measured(tool))
      verdict += unjudged(arguments, fmt::format("only the baseline has {}", tool->subject));
    if (!old.has_measured(tool) || !now.has_measured(tool))
      continue;
    const ToolAnswer &older = *old.answers.at(tool), &answer = *now.answers.at(tool);
    if (const char *missing = answer.only_in(older))
      verdict += unjudged(arguments, fmt::format("only the baseline has {}", missing));
    const std::vector<std::string> paths = answer.growth(older);
    if (paths.empty())
      verdict +=
          unjudged(arguments, fmt::format("{} are not compared with a baseline (`assay diff` "
                                          "compares them)",
                                          tool->subject));
    for (const std::string &path : paths) {
      std::vector<double> before = report::numbers_at(old.document, path),
                          after = report::numbers_at(now.document, path);
      if (before.empty() || after.empty() || after.front() <= before.front() * (1 + allowed))
        continue;
      verdict += fmt::format("failed: {} grew from {} to {}, by more than {}\n", path,
                             before.front(), after.front(), arguments.max_growth);
    }
  }
  return verdict;
}

int check(const CheckArguments &arguments) {
  if (arguments.fail_if.empty() && arguments.baseline.empty())
    base::fail(
        "check: nothing to check; write --fail-if 'totals.peak_bytes > 64MiB' or --baseline OLD");
  std::vector<report::Condition> conditions;
  conditions.reserve(arguments.fail_if.size());
  for (const std::string &text : arguments.fail_if)
    conditions.push_back(report::parse_condition(text));
  std::set<const Tool *> asked, wanted;
  for (const Tool *tool : tools()) {
    if (std::any_of(conditions.begin(), conditions.end(),
                    [&](auto &condition) { return tool->has_key(top_key(condition)); }))
      asked.insert(tool);
    if (asked.count(tool) || !arguments.baseline.empty())
      wanted.insert(tool);
  }
  analyze::Wrappers wrappers(arguments.wrappers);
  Report now(profile::find_profiles(arguments.profiles), wanted, wrappers);
  for (const Tool *tool : tools())
    if (asked.count(tool) && now.why_none.count(tool))
      base::fail("check: {}", now.why_none[tool]);
  say_unmatched(wrappers);
  Verdict verdict;
  for (const report::Condition &condition : conditions)
    if (std::optional<double> number = report::holds(condition, now.document))
      verdict += fmt::format("failed: {} (it is {})\n", condition.text, *number);
    else if (report::numbers_at(now.document, condition.path).empty())
      verdict += unjudged(arguments,
                          fmt::format("{}: nothing in the report has this path", condition.text));
  if (!arguments.baseline.empty()) {
    Report old(profile::find_profiles({arguments.baseline}), wanted, wrappers);
    verdict += grown(old, now, arguments);
    if (auto note = analyze::note_of_comparison(old.programs, now.programs))
      fmt::print(stderr, "assay: check: {}\n", *note);
    if (old.running)
      fmt::print(stderr,
                 "assay: check: of the baseline, {} still, so growth may be less than it seems\n",
                 base::with_noun(old.running, "process runs", "processes run"));
    if (!old.general_losses.empty())
      fmt::print(
          stderr,
          "assay: check: the baseline is incomplete, so growth may be less than it seems:\n{}",
          report::losses_text(old.general_losses));
  }
  if (!arguments.allow_incomplete && now.running)
    verdict +=
        fmt::format("failed: {} still, so there is more to come (--allow-incomplete passes it)\n",
                    base::with_noun(now.running, "process runs", "processes run"));
  if (!arguments.allow_incomplete && !now.general_losses.empty())
    verdict += fmt::format("failed: the profile is incomplete (--allow-incomplete passes it):\n{}",
                           report::losses_text(now.general_losses));
  write_output("-", verdict.empty() ? "passed\n" : verdict);
  return verdict.empty() ? 0 : 1;
}

} // namespace

Action define_check(CommandLine line) {
  auto arguments = std::make_shared<CheckArguments>();
  line.add_option("PROFILE,-i", arguments->profiles,
                  "profiles, runs' folders, or folders of runs, of which the latest is taken "
                  "(default: assay.out)");
  line.add_option("--fail-if", arguments->fail_if,
                  "PATH OP NUMBER[unit] on the JSON report; may be given several times")
      .takes_one_word(); // what follows is a profile
  line.add_option("--baseline", arguments->baseline, "profile or run to compare with");
  line.add_option("--max-growth", arguments->max_growth,
                  "how much more than the baseline is allowed (default: 5%)");
  line.add_flag("--require-match", arguments->require_match,
                "also fail if a condition's path leads to nothing in the report, or if a tool of "
                "the baseline did not measure");
  line.add_flag("--allow-incomplete", arguments->allow_incomplete,
                "also pass a profile that lacks what happened, as of a run that was killed");
  add_wrapper_option(line, arguments->wrappers);
  line.set_footer(
      "\nExamples:\n  assay check --fail-if 'totals.peak_bytes > 64GiB'\n  assay check --fail-if "
      "'contexts[type=Node].used_share < 10%' --fail-if 'len(losses) > 100'\n  assay check "
      "--fail-if "
      "'workingset.largest_bytes > 8MiB' --fail-if 'workingset.caches[L2].fits_share < 90%'\n");
  return [arguments](const Words &) { return check(*arguments); };
}

} // namespace cli
