// `assay trace record|check|replay|info`: the exact sequence of memory accesses of an unmodified program.

#include "cli/trace_parts.h"

#include <memory>
#include <vector>

namespace cli {

Action define_trace(CLI::App &app) {
  app.require_subcommand(1);
  struct Part {
    CLI::App *app;
    Action action;
  };
  auto parts = std::make_shared<std::vector<Part>>();
  auto add = [&](const char *name, const char *help, Action (*define)(CLI::App &)) {
    CLI::App *part = app.add_subcommand(name, help);
    parts->push_back({part, define(*part)});
  };
  add("record", "run a program, named after --, and store the trace of its accesses",
      define_trace_record);
  add("check", "run a program, and compare what is regenerated with each access as it was made",
      define_trace_check);
  add("replay", "write the accesses of a trace", define_trace_replay);
  add("info", "what a trace holds, and what it lacks", define_trace_info);
  app.footer("\nExamples:\n  assay trace record -- ./app --its-own-option\n  assay trace check -- "
             "./app\n");
  return [parts](const Words &after_dashes) {
    for (const Part &part : *parts)
      if (part.app->parsed())
        return part.action(after_dashes);
    return 2;
  };
}

} // namespace cli
