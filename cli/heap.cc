// `assay heap [PROFILE…]`: which allocations are hot, cold, short-lived or badly used?

#include "analyze/heap.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/heap_report.h"

#include <memory>

namespace cli {
namespace {

struct HeapArguments {
  AnswerOptions answer;
  bool no_stacks = false;
};

int answer_heap(const HeapArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  if (!options.sort.empty())
    analyze::heap_question(options.sort);
  profile::Profile profile = profile::read(options.files());
  image::Symbols symbols = image::open(analyze::module_files(profile));
  analyze::HeapResult result = analyze::heap(profile, symbols, {options.filter});
  if (options.json()) {
    write_output(options.output, report::heap_json(result, options.top, options.sort));
    return 0;
  }
  report::HeapTextOptions text;
  text.top = options.top ? options.top : options.sort.empty() ? 5 : 20;
  text.sort = options.sort;
  text.stacks = !arguments.no_stacks;
  write_output(options.output, report::heap_text(result, text, options.style()));
  return 0;
}

} // namespace

Action define_heap(CLI::App &app) {
  auto arguments = std::make_shared<HeapArguments>();
  add_answer_options(app, arguments->answer);
  app.add_flag("--no-stacks", arguments->no_stacks, "leave out the call stacks below the tables");
  std::string keys;
  for (const auto &question : analyze::heap_questions())
    keys += std::string("  ") + question.key +
            std::string(12 - std::string(question.key).size(), ' ') + question.question + "\n";
  app.footer("\nKeys of --sort:\n" + keys +
             "\nExamples:\n  assay heap --sort cold --top 20\n  assay heap --json -o heap.json\n");
  return [arguments](const Words &) { return answer_heap(*arguments); };
}

} // namespace cli
