// `assay values record|report|annotate|conflicts`: which instructions compute the same values again and again?
//
// `annotate` takes a profile and a function without options, so a word must be told to be one or
// the other. What has a slash or our ending, is a folder, or begins as our files do is a profile.
// That a file exists is not enough: a function may have its name. The three answers differ as text
// only; JSON is one document with everything.

#include "analyze/values.h"
#include "abi/container.h"
#include "base/fail.h"
#include "base/shell_words.h"
#include "cli/command_parts.h"
#include "cli/output.h"
#include "cli/values_record.h"
#include "report/values_report.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

namespace cli {
namespace {

struct ValuesArguments {
  AnswerOptions answer;
  std::string executable, function;
  std::vector<std::string> words; // of annotate: a profile, a function
};

enum class Question { report, annotate, conflicts };

// A folder, a file's name with a path or our ending, or a file that begins as one of ours: a
// function may be called like another file here.
bool is_profile(const std::string &word) {
  std::error_code ignored;
  if (word.find('/') != std::string::npos || word.ends_with(".assay") ||
      std::filesystem::is_directory(word, ignored))
    return true;
  char magic[sizeof AssayFileHeader::magic] = {};
  std::ifstream(word, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, ASSAY_FILE_MAGIC, sizeof magic) == 0;
}

// What to paste: a function of C++ by its linkage name, which is one word and meant by no other.
std::string next_command(const ValuesArguments &arguments, const analyze::ValuesResult &result) {
  const analyze::ValueFunction &function = result.functions.front();
  const bool is_plain = function.name.find_first_of("(<: ") == std::string::npos;
  std::string command = "assay values annotate";
  for (const std::string &profile : arguments.answer.profiles)
    command += " " + base::shell_word(profile);
  if (!arguments.executable.empty())
    command += " --executable " + base::shell_word(arguments.executable);
  command +=
      " " + base::shell_word(is_plain || function.linkage_name.empty() ? function.name
                                                                       : function.linkage_name);
  return "\nNext: " + report::printable(command) + "\n";
}

int answer(ValuesArguments arguments, Question question) {
  AnswerOptions &options = arguments.answer;
  check_format(options);
  bool is_name = false;
  // `annotate [F] [FUNCTION]`: what is a file or a folder is a profile.
  for (const std::string &word : arguments.words) {
    if (is_profile(word))
      options.profiles.push_back(word);
    else if (arguments.function.empty()) {
      arguments.function = word;
      is_name = true;
    } else
      base::fail("{} and {} are no profiles, and only one function can be named",
                 arguments.function, word);
  }
  const profile::Profile profile = profile::read(options.files());
  if (!analyze::measures_values(profile))
    base::fail("{}", analyze::why_no_values(profile));
  image::Symbols symbols = image::open(analyze::module_files(profile));
  const analyze::ValuesResult result =
      analyze::values(profile, symbols, {arguments.executable, arguments.function, is_name});
  if (!arguments.function.empty() && result.functions.empty()) {
    for (const std::string &note : result.notes) // a file that was built again has other names
      std::fprintf(stderr, "assay: %s\n", report::printable(note).c_str());
    base::fail("{}: no sample came in a function of that name; `assay values report` lists those "
               "that were met",
               report::printable(arguments.function));
  }
  if (!arguments.executable.empty() && result.functions.empty())
    base::fail(
        "{}: no sample came in a file with that in its path; `assay values report` lists those "
        "that were met",
        report::printable(arguments.executable));
  if (!options.is_text()) {
    write_document(options, report::values_document(result, options.top));
    return 0;
  }
  const report::Style style = options.style();
  std::string text;
  switch (question) {
  case Question::annotate: text = report::annotated_text(result, options.top, style); break;
  case Question::conflicts: text = report::conflicts_text(result, options.top, style); break;
  case Question::report:
    text = report::values_text(result, options.top, style);
    if (!result.functions.empty())
      text += next_command(arguments, result);
  }
  write_output(options.output, text);
  return 0;
}

const char *examples_of(Question question) {
  switch (question) {
  case Question::report:
    return "\nExamples:\n  assay values report --top 5\n  assay values report --json -o "
           "values.json\n";
  case Question::annotate:
    return "\nExamples:\n  assay values annotate my_function\n  assay values annotate values.assay "
           "my_function\n";
  case Question::conflicts: break;
  }
  return "\nExamples:\n  assay values conflicts --top 5\n  assay values conflicts --executable "
         "libz\n";
}

Action define_answer(CommandLine line, Question question) {
  auto arguments = std::make_shared<ValuesArguments>();
  AnswerOptions &options = arguments->answer;
  if (question == Question::annotate)
    line.add_option(
        "PROFILE and FUNCTION", arguments->words,
        "a profile (default: the latest run), and a function (default: the one with most samples)");
  else
    line.add_option("PROFILE,-i", options.profiles,
                    "a .assay file or a run's folder (default: the latest run in assay.out)");
  add_format_options(line, options);
  line.add_option("--top", options.top, "rows of each table, functions in JSON");
  line.add_option("--executable", arguments->executable, "only files whose path contains this");
  line.add_option("--function", arguments->function, "only functions whose name contains this");
  line.set_footer(examples_of(question));
  return [arguments, question](const Words &) { return answer(*arguments, question); };
}

} // namespace

Action define_values(CommandLine line) {
  auto answer_of = [](Question question) {
    return [question](CommandLine part) { return define_answer(part, question); };
  };
  line.set_footer(
      "\nExamples:\n  assay values record -- ./app && assay values report\n  assay values annotate "
      "my_function\n");
  return define_parts(
      line,
      {{"record", "sample a command, named after --, a process or all processes",
        define_values_record},
       {"report", "what comes again and again, and what to change", answer_of(Question::report)},
       {"annotate", "a function's instructions with their samples and values",
        answer_of(Question::annotate)},
       {"conflicts", "loads that have to wait for a store before them",
        answer_of(Question::conflicts)}});
}

} // namespace cli
