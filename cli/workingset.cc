// `assay workingset [PROFILE…]`: how large is the working set, when, and what is in it?

#include "analyze/heap.h"
#include "analyze/working_set.h"
#include "base/fail.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/working_set.h"

#include <memory>

namespace cli {
namespace {

struct WorkingSetArguments {
  AnswerOptions answer;
  std::vector<std::string> caches; // NAME=SIZE or SIZE
};

analyze::WorkingSetQuery query_of(const WorkingSetArguments &arguments) {
  analyze::WorkingSetQuery query;
  for (const std::string &word : arguments.caches) {
    size_t equals = word.find('=');
    std::string size = equals == std::string::npos ? word : word.substr(equals + 1);
    query.caches.emplace_back(equals == std::string::npos ? size : word.substr(0, equals),
                              base::parse_bytes(size));
  }
  return query;
}

int answer_working_set(const WorkingSetArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  if (!options.sort.empty() || !options.filter.empty())
    base::fail("--sort and --filter: assay workingset does not have them yet; leave them out");
  profile::Profile profile = profile::read(options.files());
  image::Symbols symbols = image::open(analyze::module_files(profile));
  auto results = analyze::working_sets(profile, symbols, query_of(arguments));
  if (results.empty())
    base::fail("there is no working set in this profile; build the program with "
               "-fassay=workingset, and run it again");
  if (options.json()) { // the first process, with the others beside it
    report::Json document = report::working_set_document(results.front(), options.top);
    for (size_t i = 1; i < results.size(); i++)
      document["processes"].push_back(report::working_set_document(results[i], options.top));
    write_output(options.output, report::document_text(document));
    return 0;
  }
  std::string text;
  for (const auto &result : results)
    text += (text.empty() ? "" : "\n") +
            report::working_set_text(result, options.top ? options.top : 10, options.style());
  write_output(options.output, text);
  return 0;
}

} // namespace

Action define_workingset(CLI::App &app) {
  auto arguments = std::make_shared<WorkingSetArguments>();
  add_answer_options(app, arguments->answer);
  app.add_option("--cache", arguments->caches,
                 "also ask whether it fits into NAME=SIZE, such as TLB=6MiB; may be repeated");
  app.footer(
      "\nExamples:\n  assay workingset\n  assay workingset --cache 512KiB --json -o set.json\n");
  return [arguments](const Words &) { return answer_working_set(*arguments); };
}

} // namespace cli
