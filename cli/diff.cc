// `assay diff OLD NEW`: what changed between two runs, place by place, in what both have measured.

#include "analyze/heap_diff.h"
#include "analyze/measured.h"
#include "analyze/working_set_diff.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"
#include "report/heap_diff.h"
#include "report/working_set_diff.h"

#include <memory>
#include <optional>

namespace cli {
namespace {

struct DiffArguments {
  AnswerOptions answer;
  bool exit_code = false;
  std::vector<std::string> wrappers;
};

struct Side {
  bool has_heap = false;
  analyze::HeapResult heap;
  std::vector<analyze::WorkingSetResult> working_sets;
  analyze::Wrappers wrappers; // by which owners were chosen
};

Side side_of(const std::string &which, const std::string &filter,
             const analyze::Wrappers &wrappers) {
  profile::Profile profile = profile::read(profile::find_profiles({which}));
  image::Symbols symbols = image::open(analyze::module_files(profile));
  Side side{analyze::measured(profile, ASSAY_TOOL_heap),
            analyze::heap(profile, symbols, {filter, {}, wrappers}),
            {},
            wrappers};
  analyze::find_wrappers(profile, symbols, side.wrappers);
  side.heap
      .contexts = {}; // a diff looks at sites: two profiles of many contexts fit where one does
  analyze::WorkingSetQuery query;
  query.filter = filter;
  query.wrappers = wrappers;
  side.working_sets = analyze::working_sets(profile, symbols, query);
  return side;
}

// Of the first process of each run, which is the program that was started.
std::optional<analyze::WorkingSetDiff> working_set_diff(const Side &older, const Side &newer) {
  if (older.working_sets.empty() || newer.working_sets.empty())
    return std::nullopt;
  auto result = analyze::diff(older.working_sets.front(), newer.working_sets.front());
  if (older.working_sets.size() > 1 || newer.working_sets.size() > 1)
    result.notes.push_back("of several processes, the first of each run are compared");
  return result;
}

int diff(const DiffArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  if (options.profiles.size() != 2)
    base::fail(
        "diff: two profiles or folders are compared, {} are named; write `assay diff OLD NEW`",
        options.profiles.size());
  Side older = side_of(options.profiles[0], options.filter, analyze::Wrappers(arguments.wrappers));
  Side newer = side_of(options.profiles[1], options.filter, older.wrappers);
  // What only the newer run shows to be a wrapper is none of the older run's owners either.
  if (newer.wrappers.names() > older.wrappers.names())
    older = side_of(options.profiles[0], options.filter, newer.wrappers);
  analyze::HeapDiff heap = analyze::diff(older.heap, newer.heap);
  auto working_set = working_set_diff(older, newer);
  bool one_only = older.working_sets.empty() != newer.working_sets.empty();
  bool same = heap.same && (!working_set || working_set->same) && !one_only;
  unsigned top = options.top;
  if (options.json()) {
    report::Json document = report::diff_json(heap, top);
    document["same"] = same;
    if (working_set)
      document["workingset"] = report::diff_json(*working_set, top);
    write_output(options.output, report::document_text(document));
  } else {
    report::Style style = options.style();
    std::string text;
    if (older.has_heap || newer.has_heap || !working_set)
      text = report::diff_text(heap, top ? top : 20, style);
    if (working_set)
      text += (text.empty() ? "" : "\n") + report::diff_text(*working_set, top ? top : 20, style);
    else if (one_only)
      text += fmt::format("\n  only the {} run has a working set\n",
                          older.working_sets.empty() ? "new" : "old");
    write_output(options.output, text);
  }
  return arguments.exit_code && !same ? 1 : 0;
}

} // namespace

Action define_diff(CLI::App &app) {
  auto arguments = std::make_shared<DiffArguments>();
  add_answer_options(app, arguments->answer);
  app.add_flag("--exit-code", arguments->exit_code, "exit status 1 if anything differs");
  add_wrapper_option(app, arguments->wrappers);
  app.footer("\nExamples:\n  assay diff before after\n  assay diff --exit-code --json before after "
             "-o diff.json\n");
  return [arguments](const Words &) { return diff(*arguments); };
}

} // namespace cli
