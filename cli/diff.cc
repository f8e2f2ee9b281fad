// `assay diff OLD NEW`: what changed between two runs, place by place, in what both have measured.
//
// Each tool compares its own answers; here is only what both runs have, and a word on what one
// lacks, which is a difference, too. The trap is wrappers: a function that only one run shows to be
// one would give the same place two owners. So the newer run begins with the older one's wrappers,
// and if it finds more, the older run is answered again. In JSON the default tool's document is the
// frame, and other tools are keys in it.

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
#include "report/json.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace cli {
namespace {

struct DiffArguments {
  AnswerOptions answer;
  bool exit_code = false;
  std::vector<std::string> wrappers;
};

struct Side {
  std::map<const Tool *, std::unique_ptr<ToolAnswer>> answers;
  std::set<const Tool *> measured;
  std::map<uint32_t, uint64_t> general_losses;
  std::vector<std::string> notes; // modules without names
  std::set<std::string> programs; // names of their files
  analyze::Wrappers wrappers;     // by which owners were chosen
};

Side side_of(const std::string &which, const std::string &filter,
             const analyze::Wrappers &wrappers) {
  profile::Profile profile = profile::read(profile::find_profiles({which}));
  image::Symbols symbols = image::open(analyze::module_files(profile));
  Side side;
  side.wrappers = wrappers;
  side.general_losses = analyze::general_losses(profile.losses);
  side.programs = analyze::program_file_names(profile);
  for (const Tool *tool : tools()) {
    if (analyze::measured(profile, tool->bit))
      side.measured.insert(tool);
    if (auto answer = tool->answer(profile, symbols, {filter, wrappers, true}))
      side.answers[tool] = std::move(answer);
  }
  analyze::find_wrappers(profile, symbols, side.wrappers);
  side.notes = symbols.notes();
  return side;
}

// What both runs have, tool by tool, and a word on what only one has.
struct Differences {
  struct Row {
    const Tool *tool;
    ToolDiff diff;
    bool measured; // in both runs; else it is the frame of the document alone
    bool matches;  // something of it, in one of the runs, the filter
  };
  std::string filter;
  std::vector<Row> rows;
  std::vector<std::string> one_sided;
  std::vector<std::string> notes; // of both runs
  std::string remarks;            // lines: what is compared, what a run lacks
  bool same = true;

  Differences(const Side &older, const Side &newer, std::string filter_text)
      : filter(std::move(filter_text)) {
    for (const Tool *tool : tools()) {
      auto old = older.answers.find(tool), now = newer.answers.find(tool);
      const bool answered = old != older.answers.end() && now != newer.answers.end();
      const bool has_old = older.measured.count(tool) && old != older.answers.end(),
                 has_new = newer.measured.count(tool) && now != newer.answers.end();
      if (answered) {
        const bool matches = !old->second->nothing_matches() || !now->second->nothing_matches();
        rows.push_back({tool, old->second->diff(*now->second), has_old && has_new, matches});
        same &= rows.back().diff.same;
      }
      if (has_old != has_new) {
        one_sided.push_back(
            fmt::format("only the {} run has {}", has_old ? "old" : "new", tool->subject));
        same = false;
      }
    }
    if (auto note = analyze::note_of_comparison(older.programs, newer.programs))
      notes.push_back(*note);
    for (const std::string &note : notes)
      remarks += fmt::format("\n  {}\n", report::printable(note));
    note_losses("old", older);
    note_losses("new", newer);
    note_names("old", older);
    note_names("new", newer);
  }

  void note_names(const char *which, const Side &side) {
    for (const std::string &note : side.notes)
      remarks += fmt::format("\n  of the {} run, {}\n", which, report::printable(note));
  }

  void note_losses(const char *which, const Side &side) {
    if (!side.general_losses.empty())
      remarks += fmt::format("\n  the {} run is incomplete:\n{}", which,
                             report::losses_text(side.general_losses));
  }

  // Of a tool, or of all.
  std::string nothing_matches(const std::string &tool) const {
    return fmt::format("  {}--filter '{}' matches nothing in either run\n",
                       tool.empty() ? "" : "of " + tool + ", ", report::printable(filter));
  }

  std::vector<std::string> tools_without_match() const {
    std::vector<std::string> names;
    for (const Row &row : rows)
      if (row.measured && !row.matches)
        names.emplace_back(row.tool->name);
    return names;
  }

  std::string text(unsigned top, const report::Style &style) const {
    bool any_measured =
        std::any_of(rows.begin(), rows.end(), [](const Row &row) { return row.measured; });
    std::vector<const Row *> shown;
    for (const Row &row : rows)
      if (row.measured || (!any_measured && one_sided.empty()))
        shown.push_back(&row);
    std::string all;
    if (std::ranges::none_of(shown, &Row::matches) && !shown.empty())
      all = nothing_matches("");
    else
      for (const Row *row : shown)
        all += (all.empty() ? "" : "\n") +
               (row->matches ? row->diff.text(top, style) : nothing_matches(row->tool->name));
    for (const std::string &word : one_sided)
      all += (all.empty() ? "  " : "\n  ") + word + "\n";
    return all + remarks;
  }
};

int diff(const DiffArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  if (options.profiles.size() != 2)
    base::fail("diff: two profiles or folders are compared, {} named; write `assay diff OLD NEW`",
               base::with_noun(options.profiles.size(), "is", "are"));
  Side older = side_of(options.profiles[0], options.filter, analyze::Wrappers(arguments.wrappers));
  Side newer = side_of(options.profiles[1], options.filter, older.wrappers);
  // What only the newer run shows to be a wrapper is none of the older run's owners either.
  if (newer.wrappers.names() > older.wrappers.names())
    older = side_of(options.profiles[0], options.filter, newer.wrappers);
  say_unmatched(newer.wrappers);
  Differences differences(older, newer, options.filter);
  if (!options.is_text()) {
    report::Json document;
    for (const Differences::Row &row : differences.rows)
      if (row.tool->bit & ASSAY_DEFAULT_TOOLS) // its document is the frame
        document = row.diff.json(options.top);
      else
        document[row.tool->name] = row.diff.json(options.top);
    document["same"] = differences.same;
    document["only_in_one"] = differences.one_sided;
    document["without_match"] = differences.tools_without_match();
    document["losses"] = {{"old", report::losses_json(older.general_losses)},
                          {"new", report::losses_json(newer.general_losses)}};
    document["notes"] = {{"old", older.notes}, {"new", newer.notes}, {"both", differences.notes}};
    write_document(options, document);
  } else {
    write_output(options.output, differences.text(options.top ? options.top : 20, options.style()));
  }
  return arguments.exit_code && !differences.same ? 1 : 0;
}

} // namespace

Action define_diff(CommandLine line) {
  auto arguments = std::make_shared<DiffArguments>();
  add_unsorted_answer_options(
      line, arguments->answer,
      {"rows of each table",
       "contexts, structs, objects and owners of lines with a name, type, function or module"});
  line.add_flag("--exit-code", arguments->exit_code, "exit status 1 if anything differs");
  add_wrapper_option(line, arguments->wrappers);
  line.set_footer(
      "\nExamples:\n  assay diff before after\n  assay diff --exit-code --json before after "
      "-o diff.json\n");
  return [arguments](const Words &) { return diff(*arguments); };
}

} // namespace cli
