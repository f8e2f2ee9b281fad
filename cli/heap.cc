// `assay heap [PROFILE…]`: which allocations are hot, cold, short-lived or badly used?
//
// Profiles of several programs are several answers: as text one after the other, in JSON the
// document of their sum, with those of each in the key `programs`. All answers are computed before
// the first byte is written: after that only writing may fail. The word after --tree may be
// missing, so what is no key but a file is a profile.

#include "analyze/heap.h"
#include "analyze/measured.h"
#include "base/fail.h"
#include "base/list.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profile/merge.h"
#include "profile/profile.h"
#include "report/heap_report.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

namespace cli {
namespace {

struct HeapArguments {
  AnswerOptions answer;
  bool no_stacks = false;
  bool tree = false;
  std::string tree_words;   // a key, a direction, or both with a comma between
  std::string tree_min;     // empty: 1%
  std::string suppressions; // path
  std::vector<std::string> wrappers;
};

constexpr const char *kTopDown = "top-down", *kBottomUp = "bottom-up";

std::string tree_word_list() {
  std::string list;
  for (const analyze::TreeKey &key : analyze::tree_keys())
    list += std::string(key.key) + ", ";
  return list + kTopDown + ", " + kBottomUp;
}

// False if a word is neither.
bool read_tree_words(const std::string &words, analyze::TreeQuery &query) {
  if (words.empty())
    return true;
  for (std::string_view word : base::split_list(words)) {
    auto keys = analyze::tree_keys();
    auto key = std::find_if(keys.begin(), keys.end(),
                            [&](const analyze::TreeKey &each) { return word == each.key; });
    if (key != keys.end())
      query.key = &*key;
    else if (word == kTopDown || word == kBottomUp)
      query.bottom_up = word == kBottomUp;
    else
      return false;
  }
  return true;
}

// The word after --tree may be a profile: `assay heap --tree app.assay`.
analyze::TreeQuery tree_query(HeapArguments &arguments) {
  analyze::TreeQuery query;
  if (!arguments.tree_min.empty())
    query.least_share = base::parse_share(arguments.tree_min, "--tree-min");
  std::error_code ignored;
  if (!read_tree_words(arguments.tree_words, query)) {
    if (!std::filesystem::exists(arguments.tree_words, ignored))
      base::fail("--tree {}: there is no such key; use one of {}", arguments.tree_words,
                 tree_word_list());
    arguments.answer.profiles.push_back(arguments.tree_words);
  }
  return query;
}

// Options that would change nothing. In a document there are tables beside a tree.
void refuse_what_has_no_part(const HeapArguments &arguments) {
  if (!arguments.tree && !arguments.tree_min.empty())
    base::fail(
        "heap: --tree-min leaves out parts of a tree, and none was asked for; add --tree, or "
        "leave it out");
  const bool orders_rows = !arguments.answer.sort.empty() || arguments.answer.top;
  if (arguments.tree && orders_rows && arguments.answer.is_text())
    base::fail("heap: {} is about tables, in whose place --tree prints a tree; write "
               "--tree=KEY for its order and --tree-min for its size, or leave out --tree",
               arguments.answer.sort.empty() ? "--top" : "--sort");
}

struct Answer {
  analyze::HeapResult result;
  std::optional<analyze::CallTree> tree;
};

Answer answer_for(const profile::Profile &profile, const analyze::HeapQuery &question,
                  const analyze::TreeQuery &query, const HeapArguments &arguments) {
  image::Symbols symbols = image::open(analyze::module_files(profile));
  Answer answer{analyze::heap(profile, symbols, question), std::nullopt};
  if (!arguments.tree)
    return answer;
  if (query.key->needs_accesses && !answer.result.accesses_counted)
    base::fail("--tree {}: this profile has no accesses; use another key", query.key->key);
  answer.tree = analyze::call_tree(answer.result, query);
  return answer;
}

// Of several programs the document of their sum, with those of each in the key `programs`.
void write_documents(const std::vector<profile::Profile> &programs,
                     const analyze::HeapQuery &question, const analyze::TreeQuery &query,
                     const HeapArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  // All answers come first: once something is written, nothing may fail but writing.
  std::vector<Answer> answers;
  answers.reserve(programs.size() + 1);
  for (const profile::Profile &program : programs)
    answers.push_back(answer_for(program, question, query, arguments));
  if (programs.size() > 1) {
    profile::Assembler sum;
    for (const profile::Profile &program : programs)
      sum.add(program);
    answers.push_back(answer_for(sum.finish(), question, query, arguments));
  }
  std::vector<report::Document> documents;
  documents.reserve(answers.size());
  for (const Answer &answer : answers)
    documents.push_back(report::heap_document(answer.result, options.top, options.sort,
                                              answer.tree ? &*answer.tree : nullptr));
  report::Document whole = std::move(documents.back());
  documents.pop_back();
  write_document(options, whole, documents);
}

int answer_heap(HeapArguments arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  if (!options.sort.empty())
    analyze::heap_question(options.sort);
  refuse_what_has_no_part(arguments);
  analyze::TreeQuery query;
  if (arguments.tree)
    query = tree_query(arguments);
  analyze::HeapQuery question{options.filter, {}, analyze::Wrappers(arguments.wrappers)};
  if (!arguments.suppressions.empty())
    question.suppressions = analyze::read_suppressions(arguments.suppressions);
  std::vector<profile::Profile> programs = profile::read_programs(options.files());
  constexpr uint64_t kInPrograms = ~uint64_t(ASSAY_TOOL_values);
  if (std::ranges::all_of(programs, [](const profile::Profile &program) {
        return !program.processes.empty() && !analyze::measured(program, kInPrograms);
      }))
    base::fail("heap: {}", programs.empty() ? analyze::kHeapNotMeasured
                                            : analyze::why_no_heap(programs.front()));
  if (!options.is_text()) {
    write_documents(programs, question, query, arguments);
    say_unmatched(question.wrappers);
    return 0;
  }
  report::HeapTextOptions text;
  text.top = options.top ? options.top : options.sort.empty() ? 5 : 20;
  text.sort = options.sort;
  text.stacks = !arguments.no_stacks;
  std::string out;
  for (size_t index = 0; index < programs.size(); index++) {
    Answer answer = answer_for(programs[index], question, query, arguments);
    text.tree = answer.tree ? &*answer.tree : nullptr;
    if (programs.size() > 1)
      out += fmt::format(
          "{}Program {} of {}, build id {}\n", index ? "\n" : "", index + 1, programs.size(),
          answer.result.program_build_id.empty() ? "unknown" : answer.result.program_build_id);
    out += report::heap_text(answer.result, text, options.style());
  }
  write_output(options.output, out);
  say_unmatched(question.wrappers);
  return 0;
}

} // namespace

Action define_heap(CommandLine line) {
  auto arguments = std::make_shared<HeapArguments>();
  add_answer_options(
      line, arguments->answer,
      {"rows of each table; in JSON, contexts", "contexts with a module, function or type"});
  line.add_flag("--no-stacks", arguments->no_stacks, "leave out the call stacks below the tables");
  line.add_option(
          "--tree",
          [arguments](const std::string &words) {
            arguments->tree = true;
            arguments->tree_words = words;
          },
          "a call tree in place of tables, by KEY (bytes): " + tree_word_list())
      .may_lack_word("[KEY]");
  line.add_option("--tree-min", arguments->tree_min,
                  "leave out parts of the tree with less of the whole (1%)");
  line.add_option("--suppressions", arguments->suppressions,
                  "a file of known leaks, as LeakSanitizer reads it: leak:PATTERN");
  add_wrapper_option(line, arguments->wrappers);
  std::string keys;
  for (const auto &question : analyze::heap_questions())
    keys += std::string("  ") + question.key +
            std::string(12 - std::string(question.key).size(), ' ') + question.question + "\n";
  line.set_footer("\nKeys of --sort:\n" + keys +
                  "\nExamples:\n  assay heap --sort cold --top 20\n  assay heap "
                  "--tree=accesses,bottom-up --tree-min 5%\n  assay heap --json -o heap.json\n");
  return [arguments](const Words &) { return answer_heap(*arguments); };
}

} // namespace cli
