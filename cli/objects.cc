// `assay objects [PROFILE…]`: which words of each object are used, and how often?
//
// A wrong key of --sort is found before the profile is read. Without --top, text has 10 rows, or 20
// if a key was chosen, and JSON has all of them. Symbols are opened here, because the program
// records places and no names.

#include "analyze/objects.h"
#include "abi/tools.h"
#include "analyze/heap.h"
#include "analyze/measured.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/objects_report.h"

#include <memory>

namespace cli {
namespace {

struct ObjectsArguments {
  AnswerOptions answer;
  unsigned maps = 3;
  std::vector<std::string> wrappers;
};

int answer_objects(const ObjectsArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  analyze::object_order(options.sort);
  profile::Profile profile = profile::read(options.files());
  if (!analyze::measures_objects(profile))
    base::fail("{}", analyze::why_no_objects(profile));
  image::Symbols symbols = image::open(analyze::module_files(profile));
  const analyze::Wrappers wrappers(arguments.wrappers);
  const analyze::ObjectsResult result =
      analyze::objects(profile, symbols, {options.filter, options.sort, wrappers});
  say_unmatched(wrappers);
  if (!options.is_text()) {
    write_document(options, report::objects_document(result, options.top));
    return 0;
  }
  report::ObjectsTextOptions how;
  how.top = options.top ? options.top : options.sort.empty() ? 10 : 20;
  how.maps = arguments.maps;
  how.sort = options.sort;
  write_output(options.output, report::objects_text(result, how, options.style()));
  return 0;
}

} // namespace

Action define_objects(CommandLine line) {
  auto arguments = std::make_shared<ObjectsArguments>();
  add_answer_options(
      line, arguments->answer,
      {"objects in the table (10); in JSON all", "objects with a name, type, function or module"});
  line.add_option("--maps", arguments->maps, "objects that are drawn word by word (3)");
  add_wrapper_option(line, arguments->wrappers);
  std::string keys;
  for (const auto &order : analyze::object_orders())
    keys += std::string("  ") + order.key + std::string(12 - std::string(order.key).size(), ' ') +
            order.question + "\n";
  line.set_footer(
      "\nKeys of --sort:\n" + keys +
      "\nExamples:\n  assay objects --maps 5\n  assay objects --sort hotness --filter node "
      "--json -o objects.json\n");
  return [arguments](const Words &) { return answer_objects(*arguments); };
}

} // namespace cli
