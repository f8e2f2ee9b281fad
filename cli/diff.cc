// `assay diff OLD NEW`: what changed between two runs, place by place.

#include "analyze/heap_diff.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profile/find_profiles.h"
#include "profile/profile.h"
#include "report/heap_diff.h"

#include <memory>

namespace cli {
namespace {

struct DiffArguments {
  AnswerOptions answer;
  bool exit_code = false;
};

analyze::HeapResult answer(const std::string &which, const std::string &filter) {
  profile::Profile profile = profile::read(profile::find_profiles({which}));
  image::Symbols symbols = image::open(analyze::module_files(profile));
  analyze::HeapResult result = analyze::heap(profile, symbols, {filter, {}});
  result.contexts = {}; // a diff looks at sites: two profiles of many contexts fit where one does
  return result;
}

int diff(const DiffArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  if (options.profiles.size() != 2)
    base::fail(
        "diff: two profiles or folders are compared, {} are named; write `assay diff OLD NEW`",
        options.profiles.size());
  analyze::HeapDiff result = analyze::diff(answer(options.profiles[0], options.filter),
                                           answer(options.profiles[1], options.filter));
  write_output(options.output,
               options.json()
                   ? report::diff_json(result, options.top)
                   : report::diff_text(result, options.top ? options.top : 20, options.style()));
  return arguments.exit_code && !result.same ? 1 : 0;
}

} // namespace

Action define_diff(CLI::App &app) {
  auto arguments = std::make_shared<DiffArguments>();
  add_answer_options(app, arguments->answer);
  app.add_flag("--exit-code", arguments->exit_code, "exit status 1 if anything differs");
  app.footer("\nExamples:\n  assay diff before after\n  assay diff --exit-code --json before after "
             "-o diff.json\n");
  return [arguments](const Words &) { return diff(*arguments); };
}

} // namespace cli
