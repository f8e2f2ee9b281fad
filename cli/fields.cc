// `assay fields [PROFILE…]`: which fields of structs are used, together, and which waste their cache line?
//
// A profile without fields is refused with the reason, not answered with empty tables. Without
// --top, text has 10 structs, and JSON has all of them; --draw says how many are drawn member by
// member. `apply` is a part of this command, but all of it is elsewhere (define_fields_apply()).

#include "analyze/fields.h"
#include "base/fail.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/fields_apply.h"
#include "cli/output.h"
#include "report/fields.h"

#include <memory>

namespace cli {
namespace {

struct FieldsArguments {
  AnswerOptions answer;
  std::string threshold = "0.1%";
  unsigned drawings = 3;
};

int answer_fields(const FieldsArguments &arguments) {
  const AnswerOptions &options = arguments.answer;
  check_format(options);
  analyze::FieldsQuery query{options.sort, options.filter,
                             base::parse_share(arguments.threshold, "--threshold")};
  profile::Profile profile = profile::read(options.files());
  if (!analyze::has_fields(profile))
    base::fail("{}", analyze::why_no_fields(profile));
  analyze::FieldsResult result = analyze::fields(profile, query);
  if (!options.is_text()) {
    write_document(options, report::fields_document(result, options.top));
    return 0;
  }
  report::FieldsTextOptions how;
  how.top = options.top ? options.top : 10;
  how.drawings = arguments.drawings;
  how.sort = options.sort;
  write_output(options.output, report::fields_text(result, how, options.style()));
  return 0;
}

} // namespace

Action define_fields(CommandLine line) {
  auto arguments = std::make_shared<FieldsArguments>();
  add_answer_options(line, arguments->answer,
                     {"structs (10); in JSON all", "structs with a name or file"});
  line.add_option("--threshold", arguments->threshold,
                  "leave out structs with a smaller share of all accesses than that, such as 1%; "
                  "0.1% if not given")
      .takes_one_word();
  line.add_option("--draw", arguments->drawings,
                  "draw so many structs member by member; 3 if not given");
  std::string keys;
  for (const auto &order : analyze::struct_orders())
    keys += std::string("  ") + order.key + std::string(12 - std::string(order.key).size(), ' ') +
            order.question + "\n";
  line.set_footer(
      "\nKeys of --sort:\n" + keys +
      "\nExamples:\n  assay fields --sort accesses --top 20\n  assay fields --filter Node "
      "--json -o "
      "fields.json\n");
  const CommandLine apply =
      line.add_part("apply", "give a struct the order of members that is advised");
  Action apply_action = define_fields_apply(apply, arguments->answer.profiles);
  return [arguments, apply, apply_action](const Words &after_dashes) {
    return apply.is_given() ? apply_action(after_dashes) : answer_fields(*arguments);
  };
}

} // namespace cli
