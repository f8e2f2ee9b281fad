// `assay report [PROFILE…]`: what do all tools say together, and what is worth changing first?
//
// Each tool answers its own question as for `check` and `diff` (cli/tool.h); analyze/joined.h joins
// the answers. So a tool that is added takes part by filling its field of analyze::ToolResults, and
// this file names none.

#include "analyze/joined.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/tool.h"
#include "profile/merge.h"
#include "profile/profile.h"
#include "report/joined_report.h"

#include <fmt/format.h>

#include <memory>

namespace cli {
namespace {

struct ReportArguments {
  AnswerOptions answer;
  std::vector<std::string> wrapper_patterns, caches;
  analyze::Wrappers wrappers; // of these patterns
};

// What one program's profile says. The joined result refers to the answers. A filter chooses rows of the whole run's
// answer: what each is worth depends on all of it.
class Answer {
public:
  Answer(const profile::Profile &profile, const ReportArguments &arguments) {
    const std::string &filter = arguments.answer.filter;
    if (filter.empty()) {
      ask(profile, arguments, {arguments.answer.sort, ""});
    } else {
      const Answer matching(profile, arguments, filter);
      ask(profile, arguments, {arguments.answer.sort, filter, &matching.joined_});
    }
  }
  Answer(Answer &&) = default;
  const analyze::JoinedResult &joined() const { return joined_; }

private:
  // What of it matches.
  Answer(const profile::Profile &profile, const ReportArguments &arguments,
         const std::string &filter) {
    ask(profile, arguments, {"", filter});
  }

  void ask(const profile::Profile &profile, const ReportArguments &arguments,
           const analyze::JoinQuery &join) {
    image::Symbols symbols = image::open(analyze::module_files(profile));
    const ToolQuery query{join.matching ? "" : join.filter, arguments.wrappers, false,
                          caches_of(arguments.caches)};
    analyze::ToolResults results;
    for (const Tool *tool : tools())
      if (auto answer = tool->answer(profile, symbols, query)) {
        answer->put(results);
        answers_.push_back(std::move(answer));
      }
    joined_ = analyze::join(results, join);
  }

  std::vector<std::unique_ptr<ToolAnswer>> answers_;
  analyze::JoinedResult joined_;
};

// Of several programs the document of their sum, with those of each in the key `programs`.
void write_documents(const std::vector<profile::Profile> &programs,
                     const ReportArguments &arguments) {
  // All answers come first: once something is written, nothing may fail but writing.
  std::vector<Answer> answers;
  answers.reserve(programs.size() + 1);
  for (const profile::Profile &program : programs)
    answers.emplace_back(program, arguments);
  if (programs.size() > 1) {
    profile::Assembler sum;
    for (const profile::Profile &program : programs)
      sum.add(program);
    answers.emplace_back(sum.finish(), arguments);
  }
  std::vector<report::Document> documents;
  documents.reserve(answers.size());
  for (const Answer &answer : answers)
    documents.push_back(report::joined_document(answer.joined(), arguments.answer.top));
  report::Document whole = std::move(documents.back());
  documents.pop_back();
  write_document(arguments.answer, whole, documents);
}

int answer_report(ReportArguments arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  analyze::joined_order(options.sort);
  caches_of(arguments.caches);
  arguments.wrappers = analyze::Wrappers(arguments.wrapper_patterns);
  const std::vector<profile::Profile> programs = profile::read_programs(options.files());
  if (!options.is_text()) {
    write_documents(programs, arguments);
    say_unmatched(arguments.wrappers);
    return 0;
  }
  report::JoinedTextOptions how;
  how.top = options.top ? options.top : options.sort.empty() ? 5 : 20;
  how.sort = options.sort;
  std::string out;
  for (size_t index = 0; index < programs.size(); index++) {
    const Answer answer(programs[index], arguments);
    const std::string &build_id = answer.joined().program_build_id;
    if (programs.size() > 1)
      out += fmt::format("{}Program {} of {}, build id {}\n", index ? "\n" : "", index + 1,
                         programs.size(), build_id.empty() ? "unknown" : build_id);
    out += report::joined_text(answer.joined(), how, options.style());
  }
  write_output(options.output, out);
  say_unmatched(arguments.wrappers);
  return 0;
}

} // namespace

Action define_report(CommandLine line) {
  auto arguments = std::make_shared<ReportArguments>();
  add_answer_options(
      line, arguments->answer,
      {"types and sites in the tables", "types and sites with a name, function or module"});
  add_cache_option(line, arguments->caches);
  add_wrapper_option(line, arguments->wrapper_patterns);
  std::string keys;
  for (const auto &order : analyze::joined_orders())
    keys += std::string("  ") + order.key + std::string(12 - std::string(order.key).size(), ' ') +
            "which types and sites " + order.question + "\n";
  line.set_footer(
      "\nKeys of --sort:\n" + keys +
      "\nExamples:\n  assay report --top 10 --cache L2=1MiB\n  assay report --filter Node "
      "--json -o "
      "report.json\n");
  return [arguments](const Words &) { return answer_report(*arguments); };
}

} // namespace cli
