// `assay trace replay` and `assay trace info`: what a trace holds.
//
// `replay` hands accesses to the output of the chosen format while they are decoded. A file that is
// damaged is replayed as far as it could be read, with a word on standard error first. `info`
// replays the whole trace, too: how many accesses came from how many values is known only then.

#include "base/fail.h"
#include "cli/output.h"
#include "cli/replay_output.h"
#include "cli/trace_parts.h"
#include "cli/traced_program.h"
#include "report/trace_report.h"
#include "trace/sink_thread.h"
#include "trace/trace_file.h"

#include <cstdio>
#include <memory>

namespace cli {
namespace {

struct AskArguments {
  AnswerOptions answer;
  std::string folder;
};

struct ReplayArguments {
  std::string folder, format = "text";
  bool by_thread = false, interleave = false;
};

int replay(const ReplayArguments &arguments) {
  if (arguments.by_thread && arguments.interleave)
    base::fail("trace replay: --by-thread and --interleave exclude each other; choose one");
  const trace::Trace trace(trace_file_of(arguments.folder));
  if (!trace.damage().empty())
    std::fprintf(stderr, "assay: %s\n", trace.damage().c_str());
  const auto output = replay_output(arguments.format, trace, stdout);
  if (arguments.interleave && arguments.format != "binary")
    std::puts("# threads are in the order of time as far as it is known: a plausible order");
  if (arguments.by_thread)
    trace.replay_by_thread(*output);
  else
    trace.replay(*output, order_of(arguments.interleave));
  output->finish();
  return 0;
}

int info(const AskArguments &arguments) {
  check_format(arguments.answer);
  const trace::Trace trace(trace_file_of(arguments.folder));
  analyze::AccessCounts counts;
  trace::SinkThread thread(counts);
  const trace::LoggedCounts logged = trace.replay(thread);
  thread.finish();
  analyze::TracedProgram program = traced_program(trace);
  program.values = logged.values;
  program.branches = logged.branches;
  analyze::AccessPlaces places(program);
  if (arguments.answer.is_text())
    write_output(arguments.answer.output, report::trace_info_text(program, places, counts, 20));
  else
    write_document(arguments.answer, report::trace_info_json(program, places, counts));
  return 0;
}

} // namespace

Action define_trace_replay(CommandLine line) {
  auto arguments = std::make_shared<ReplayArguments>();
  line.add_option("DIR", arguments->folder,
                  "folder of the trace (default: the latest in assay.out)");
  line.add_option("--format", arguments->format, "text, binary or nests (text)");
  line.add_flag("--by-thread", arguments->by_thread, "one thread after the other");
  add_interleave(line, arguments->interleave);
  line.set_footer(
      "\nExamples:\n  assay trace replay | head\n  assay trace replay DIR --format binary > "
      "accesses.bin\n");
  return [arguments](const Words &) { return replay(*arguments); };
}

Action define_trace_info(CommandLine line) {
  auto arguments = std::make_shared<AskArguments>();
  line.add_option("DIR", arguments->folder,
                  "folder of the trace (default: the latest in assay.out)");
  add_format_options(line, arguments->answer);
  line.set_footer("\nExamples:\n  assay trace info\n  assay trace info DIR\n");
  return [arguments](const Words &) { return info(*arguments); };
}

} // namespace cli
