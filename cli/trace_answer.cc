// `assay trace counts|cache|reuse|mrc [DIR]`: an analysis of a trace; `assay trace run`: analyses
// of a program while it runs.
//
// Both ask the same analyses (cli/trace_analyses.cc): of a trace, one; of a running program,
// several at once, each of which gets every batch, because the program runs only once. One analysis
// has its usual document; several are keys of assay.trace-run/1. The program has run before the
// answer is written, so its status counts even if that fails.

#include "base/fail.h"
#include "base/list.h"
#include "cli/memory_limit.h"
#include "cli/output.h"
#include "cli/program_command.h"
#include "cli/temporary_folder.h"
#include "cli/trace_analyses.h"
#include "cli/trace_parts.h"
#include "cli/traced_program.h"
#include "cli/traced_run.h"
#include "trace/sink_thread.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <optional>

namespace cli {
namespace {

struct AnswerArguments {
  AnswerOptions answer;
  AnalysisOptions options;
  std::string folder;
  bool interleave = false;
};

int answer(const AnswerArguments &arguments, const AnalysisKind &kind) {
  check_format(arguments.answer);
  const report::TraceQuery &query = arguments.options.query;
  report::check_query(query, kind.keys());
  const std::unique_ptr<Analysis> analysis = kind.make(arguments.options);
  const trace::Trace trace(trace_file_of(arguments.folder));
  trace::SinkThread thread(analysis->sink());
  trace.replay(thread, order_of(arguments.interleave));
  thread.finish();
  const analyze::TracedProgram program = traced_program(trace);
  analyze::AccessPlaces places(program);
  if (arguments.answer.is_text())
    write_output(arguments.answer.output,
                 analysis->text(program, places, query, arguments.answer.style()));
  else
    write_document(arguments.answer, analysis->json(program, places, query));
  return 0;
}

struct RunArguments {
  AnswerOptions answer;
  AnalysisOptions options;
  TraceChoice choice;
  std::string analyses = "counts,cache,mrc";
};

// Hands accesses to several sinks.
class Several : public profile::AccessSink {
public:
  std::vector<std::unique_ptr<Analysis>> analyses;
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    for (const auto &each : analyses)
      each->sink().accesses(origin, batch);
  }
  void loop(const profile::AccessOrigin &origin, std::span<const profile::AccessRun> body,
            uint64_t times) override {
    for (const auto &each : analyses)
      each->sink().loop(origin, body, times);
  }
};

struct Chosen {
  std::vector<const AnalysisKind *> kinds;
  Several sinks;
};

void choose(const RunArguments &arguments, Chosen &chosen) {
  for (std::string_view word : base::split_list(arguments.analyses)) {
    const AnalysisKind &kind = analysis_kind(std::string(word));
    if (std::ranges::find(chosen.kinds, &kind) != chosen.kinds.end())
      continue; // named twice
    chosen.kinds.push_back(&kind);
    chosen.sinks.analyses.push_back(kind.make(arguments.options));
  }
  check_options(arguments.options, chosen.kinds);
  report::check_query(arguments.options.query, {});
}

void write_answers(const RunArguments &arguments, Chosen &chosen,
                   const analyze::TracedProgram &program) {
  analyze::AccessPlaces places(program);
  const report::TraceQuery &query = arguments.options.query;
  if (arguments.answer.is_text()) {
    std::string text;
    for (const auto &analysis : chosen.sinks.analyses)
      text += (text.empty() ? "" : "\n") +
              analysis->text(program, places, query, arguments.answer.style());
    return write_output(arguments.answer.output, text);
  }
  if (chosen.kinds.size() == 1)
    return write_document(arguments.answer, chosen.sinks.analyses[0]->json(program, places, query));
  report::Json all = {{"schema", "assay.trace-run/1"}};
  for (size_t i = 0; i < chosen.kinds.size(); i++)
    all[chosen.kinds[i]->name] = chosen.sinks.analyses[i]->json(program, places, query);
  write_document(arguments.answer, all);
}

// The program's output is its own; ours comes behind it.
int run(const RunArguments &arguments) {
  if (arguments.choice.command.empty())
    base::fail("trace run: which program? write `assay trace run --analysis mrc -- ./app`");
  check_format(arguments.answer);
  check_output(arguments.answer.output);
  Chosen chosen;
  choose(arguments, chosen);
  std::optional<ChildStatus> status;
  {
    const TemporaryFolder folder("assay-trace-run");
    trace::SinkThread thread(chosen.sinks);
    trace::LiveAccesses live(thread);
    TracedRun run(arguments.choice.command, settings_of(arguments.choice, folder.path()), live);
    status = run.run();
    if (status->start_error)
      return say_not_started(arguments.choice.command.front(), *status);
    if (live.files().empty())
      say_unreached(arguments.choice.command.front(), run.recording(), status->wait_status);
    else
      try { // the program has run: its status counts
        thread.finish();
        write_answers(arguments, chosen, traced_program(live, arguments.choice.command));
      } catch (const base::Failure &failure) {
        std::fprintf(stderr, "assay: %s\n", failure.what());
      } catch (const std::bad_alloc &) {
        say_memory_is_used_up();
      }
  }
  end_like(status->wait_status);
}

std::string keys_of(const AnalysisKind &kind) {
  return fmt::format("{}", fmt::join(kind.keys(), ", "));
}

} // namespace

std::vector<CommandPart> trace_answers() {
  std::vector<CommandPart> parts;
  for (const AnalysisKind &kind : analysis_kinds())
    parts.push_back({kind.name, kind.question, [&kind](CommandLine line) -> Action {
                       auto arguments = std::make_shared<AnswerArguments>();
                       line.add_option("DIR", arguments->folder,
                                       "folder of the trace (default: the latest in assay.out)");
                       add_format_options(line, arguments->answer);
                       if (kind.has_rows)
                         add_query_options(line, arguments->options, keys_of(kind));
                       if (kind.asks_of_order)
                         add_interleave(line, arguments->interleave);
                       kind.add_options(line, arguments->options);
                       line.set_footer(std::string("\nExamples:\n") + kind.examples);
                       return
                           [arguments, &kind](const Words &) { return answer(*arguments, kind); };
                     }});
  return parts;
}

Action define_trace_run(CommandLine line) {
  auto arguments = std::make_shared<RunArguments>();
  std::string names;
  for (const AnalysisKind &kind : analysis_kinds())
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  line.add_option("--analysis", arguments->analyses, "one or several, with commas: " + names)
      .shows_default();
  add_format_options(line, arguments->answer);
  add_choice(line, arguments->choice);
  add_query_options(line, arguments->options, "");
  for (const AnalysisKind &kind : analysis_kinds())
    kind.add_options(line, arguments->options);
  line.set_footer(
      "\nExamples:\n  assay trace run --analysis mrc -- ./app --its-own-option\n  assay "
      "trace run --analysis cache,counts -o report.txt -- ./app\n");
  return act_on_program(line, "trace run", arguments->choice.command,
                        [arguments] { return run(*arguments); });
}

} // namespace cli
