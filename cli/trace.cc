// `assay trace`: the exact sequence of memory accesses of an unmodified program.

#include "cli/command_parts.h"
#include "cli/trace_parts.h"

namespace cli {

Action define_trace(CommandLine line) {
  line.set_footer("\nExamples:\n  assay trace record -- ./app --its-own-option\n  assay trace run "
                  "--analysis cache,mrc -- ./app\n");
  std::vector<CommandPart> parts = {
      {"record", "run a program, named after --, and store the trace of its accesses",
       define_trace_record},
      {"check", "run a program, and compare what is regenerated with each access as it was made",
       define_trace_check},
      {"run", "run a program, and analyse its accesses as it makes them; nothing is stored",
       define_trace_run},
      {"replay", "write the accesses of a trace", define_trace_replay},
      {"skeleton", "write a program in C that makes the accesses of a trace",
       define_trace_skeleton},
      {"instrument", "write a statically linked program again, so that it can be traced",
       define_trace_instrument},
      {"info", "what a trace holds, and what it lacks", define_trace_info}};
  for (CommandPart &part : trace_answers())
    parts.push_back(std::move(part));
  return define_parts(line, parts);
}

} // namespace cli
