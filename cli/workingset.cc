// `assay workingset [PROFILE…]`: how large is the working set, when, and what is in it?
//
// Each process has a working set of its own, and they are not added up. Text shows one after the
// other; in JSON the document is that of the first process, with the others in its key `processes`,
// so that one process reads the same with and without others. A wrong key of --sort is found before
// the profile is read.

#include "analyze/workingset.h"
#include "analyze/heap.h"
#include "base/fail.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/workingset.h"

#include <memory>
#include <optional>

namespace cli {
namespace {

struct WorkingSetArguments {
  AnswerOptions answer;
  std::vector<std::string> caches; // NAME=SIZE or SIZE
  std::optional<std::string> line; // bytes; as recorded without it
  std::vector<std::string> wrappers;
};

analyze::WorkingSetQuery query_of(const WorkingSetArguments &arguments) {
  analyze::WorkingSetQuery query;
  query.caches = caches_of(arguments.caches);
  if (arguments.line) {
    query.line_bytes = arguments.line->empty() ? 0 : base::parse_bytes(*arguments.line, "--line");
    if (query.line_bytes == 0)
      base::fail("--line '{}': say how many bytes, such as 128", *arguments.line);
  }
  query.sort = arguments.answer.sort;
  query.filter = arguments.answer.filter;
  query.wrappers = analyze::Wrappers(arguments.wrappers);
  return query;
}

int answer_workingset(const WorkingSetArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  analyze::owner_order(options.sort);
  profile::Profile profile = profile::read(options.files());
  image::Symbols symbols = image::open(analyze::module_files(profile));
  const analyze::WorkingSetQuery query = query_of(arguments);
  auto results = analyze::workingsets(profile, symbols, query);
  if (results.empty())
    base::fail("{}", analyze::why_no_working_sets(profile));
  say_unmatched(query.wrappers);
  if (!options.is_text()) { // the first process, with the others beside it
    report::Json document = report::workingset_document(results.front(), options.top);
    for (size_t i = 1; i < results.size(); i++)
      document["processes"].push_back(report::workingset_document(results[i], options.top));
    write_document(options, document);
    return 0;
  }
  report::WorkingSetTextOptions how;
  how.top = options.top ? options.top : options.sort.empty() ? 10 : 20;
  how.sort = options.sort;
  write_output(options.output, report::workingsets_text(results, how, options.style()));
  return 0;
}

} // namespace

Action define_workingset(CommandLine line) {
  auto arguments = std::make_shared<WorkingSetArguments>();
  add_answer_options(line, arguments->answer,
                     {"rows of each table; in JSON, owners of lines",
                      "owners of lines with a name, type or kind"});
  add_cache_option(line, arguments->caches);
  line.add_option("--line", arguments->line,
                  "fold lines into larger ones of so many bytes, such as 128 or 4096");
  add_wrapper_option(line, arguments->wrappers);
  std::string keys;
  for (const auto &order : analyze::owner_orders())
    keys += std::string("  ") + order.key + std::string(12 - std::string(order.key).size(), ' ') +
            order.question + "\n";
  line.set_footer(
      "\nKeys of --sort:\n" + keys +
      "\nExamples:\n  assay workingset --sort most --top 20\n  assay workingset --line 4096 "
      "--cache TLB=6MiB\n  assay workingset --cache 512KiB --json -o set.json\n");
  return [arguments](const Words &) { return answer_workingset(*arguments); };
}

} // namespace cli
