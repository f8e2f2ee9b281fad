// `assay trace record` and `assay trace check`: programs that run while their accesses are logged.
//
// `record` writes the trace while the program runs; only if parts of the run were chosen does it go
// through PartialSink, whose gate says when to log.
//
// `check` has the program log both values and each access, and compares what the values yield with
// what was accessed; an access without counterpart is a failure, too. If the program failed, it
// runs once more without us: only a status that is another one then is our fault.

#include "base/fail.h"
#include "base/folder_lock.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "cli/program_command.h"
#include "cli/temporary_folder.h"
#include "cli/trace_parts.h"
#include "cli/traced_program.h"
#include "cli/traced_run.h"
#include "trace/compare.h"
#include "trace/trace_writer.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

struct RecordArguments {
  std::string output;
  TraceChoice choice;
};

// The folder of the trace; `made` are those that did not exist, the outermost first.
fs::path make_folder(const std::string &wanted, const std::string &program, pid_t pid,
                     std::vector<fs::path> &made) {
  const fs::path folder =
      !wanted.empty() ? wanted : new_folder(fs::path(program).filename().string(), pid);
  std::error_code error;
  for (fs::path each = folder; !each.empty() && !fs::exists(each, error); each = each.parent_path())
    made.insert(made.begin(), each);
  fs::create_directories(folder, error);
  if (error)
    base::fail("{}: the folder of the trace cannot be made: {}; choose another one with -o",
               folder.string(), error.message());
  return folder;
}

// As `assay trace info` says it: with what the trace holds to be replayed.
uintmax_t stored_bytes(const fs::path &file) {
  std::error_code ignored;
  const uintmax_t bytes = fs::file_size(file, ignored);
  return ignored ? 0 : bytes;
}

// Of a program that did not begin, or was not reached. Folders that have something in them stay.
void leave_nothing(trace::TraceWriter &writer, const std::vector<fs::path> &made) {
  writer.discard();
  std::error_code ignored;
  for (auto each = made.rbegin(); each != made.rend(); ++each)
    fs::remove(*each, ignored);
}

void say_untraced(const std::vector<trace::MovedFiles::Untraced> &files) {
  constexpr size_t kNamed = 3;
  for (size_t i = 0; i < std::min(files.size(), kNamed); i++)
    std::fprintf(stderr, "assay: %s is not traced: %s\n", files[i].name.c_str(),
                 files[i].why.c_str());
  if (files.size() > kNamed)
    std::fprintf(stderr, "assay: %s more are not traced; `assay trace info` says why\n",
                 base::with_noun(files.size() - kNamed, "file").c_str());
}

void say_untraced(uint32_t threads, int streams_each, const char *command) {
  if (threads)
    std::fprintf(
        stderr, "assay: %s%s not traced: more than %d ran at once\n", command,
        base::with_noun(threads, "thread or handler was", "threads or handlers were").c_str(),
        ASSAY_RING_STREAMS / streams_each);
}

int record(const RecordArguments &arguments) {
  if (arguments.choice.command.empty())
    base::fail("trace record: what is to be traced? write `assay trace record -- ./app`");
  const trace::TraceParts parts = parts_of(arguments.choice);
  take_switches(arguments.choice);
  std::vector<fs::path> made;
  const fs::path folder =
      make_folder(arguments.output, arguments.choice.command.front(), getpid(), made);
  // The moved code of another recording would take the place of ours.
  const base::FolderLock lock(folder);
  trace::RecordingSettings settings = settings_of(arguments.choice, folder);
  const fs::path file = folder / kTraceFile;
  trace::TraceWriter writer(file, static_cast<uint32_t>(getpid()), arguments.choice.command);
  if (!parts.is_all())
    writer.parts(parts.asked);
  trace::PartialSink partial(writer, parts);
  settings.start_mark = parts.start_mark;
  settings.stop_mark = parts.stop_mark;
  if (!parts.is_all() && !parts.has_marks())
    settings.gate = [&](uint64_t elapsed_ns) { return partial.gate(elapsed_ns); };
  trace::TraceSink &sink = parts.is_all() ? static_cast<trace::TraceSink &>(writer) : partial;
  TracedRun run(arguments.choice.command, settings, sink);
  const ChildStatus status = run.run();
  if (run.failed())
    try { // what was logged until then
      writer.finish();
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): a failure has been said
    }
  const std::string &program = arguments.choice.command.front();
  if (status.start_error) {
    leave_nothing(writer, made);
    return say_not_started(program, status);
  }
  const auto progress = run.recording().progress();
  if (progress.files == 0 && !run.failed()) {
    leave_nothing(writer, made);
    say_unreached(program, run.recording(), status.wait_status);
  } else if (const auto why = partial.why_nothing(); why && !parts.is_all() && !run.failed())
    std::fprintf(stderr, "assay: nothing was recorded: %s\n", why->c_str());
  else
    std::fprintf(stderr,
                 "assay: %s logged, %s stored, in %s; %s moved in %s of %s\n"
                 "assay: trace in %s\nassay: next: assay trace info %s\n",
                 base::format_bytes(double(writer.logged_bytes())).c_str(),
                 base::format_bytes(double(stored_bytes(file))).c_str(),
                 base::format_counted(double(writer.streams()), "stream").c_str(),
                 base::format_counted(double(progress.moved_functions), "function").c_str(),
                 base::format_counted(double(progress.moved_files), "file").c_str(),
                 run.programs().c_str(), file.c_str(), base::shell_word(folder.string()).c_str());
  say_untraced(run.recording().files().untraced());
  say_untraced(progress.untraced_threads, 1, "");
  end_like(status.wait_status);
}

bool was_asked_to_end(int wait_status) {
  const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  return signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
}

// What the program's status is without us: asked only where it has failed with us, not where somebody ended it.
bool fails_alike(const std::vector<std::string> &command, int wait_status) {
  if (wait_status == 0 || was_asked_to_end(wait_status))
    return true;
  ChildSettings native;
  native.quiet = true;
  return run_child(command, native).wait_status == wait_status;
}

int check(const RecordArguments &arguments) {
  if (arguments.choice.command.empty())
    base::fail("trace check: which program? write `assay trace check -- ./app`");
  const TemporaryFolder folder("assay-trace-check");
  trace::RecordingSettings settings = settings_of(arguments.choice, folder.path());
  if (settings.log != ASSAY_LOG_groups)
    base::fail("trace check --log {}: choose values or groups", arguments.choice.log);
  settings.log |= ASSAY_LOG_accesses;
  trace::Comparison comparison;
  TracedRun run(arguments.choice.command, settings, comparison);
  const ChildStatus status = run.run();
  if (status.start_error)
    return say_not_started(arguments.choice.command.front(), status);
  if (!fails_alike(arguments.choice.command, status.wait_status)) {
    std::fprintf(stderr,
                 "assay: trace check: the program ended otherwise than it does without us (wait "
                 "status %#x)\n",
                 static_cast<unsigned>(status.wait_status));
    return 1;
  }
  if (run.failed()) {
    std::fprintf(stderr, "assay: trace check: not all of the run was compared\n");
    return 1;
  }
  if (comparison.difference()) {
    std::fprintf(stderr, "assay: trace check: %s\n", comparison.difference()->c_str());
    return 1;
  }
  // By somebody who asked us to end, as Ctrl-C does: not by the program itself.
  const bool was_ended =
      WIFSIGNALED(status.wait_status) && WTERMSIG(status.wait_status) == status.asked_by;
  if (was_ended)
    std::fprintf(stderr,
                 "assay: trace check: a signal ended the program (SIG%s); what it would have done "
                 "after that was not compared\n",
                 sigabbrev_np(status.asked_by));
  if (comparison.compared() == 0) {
    if (was_ended)
      end_like(status.wait_status);
    if (run.recording().progress().files == 0)
      say_unreached(arguments.choice.command.front(), run.recording(), status.wait_status);
    else
      std::fprintf(stderr, "assay: trace check: nothing was traced\n");
    return 1;
  }
  std::fprintf(stderr, "assay: trace check: %s of %s, none differs; %s without counterpart%s\n",
               base::format_counted(double(comparison.compared()), "access", "accesses").c_str(),
               run.programs().c_str(), base::format_count(double(comparison.unpaired())).c_str(),
               comparison.unpaired() ? ", lost where a fault, a jump out of a handler or a kill "
                                       "ended what a thread was logging"
                                     : "");
  say_untraced(uint32_t(comparison.untraced_threads()), 2, "trace check: "); // both logs
  if (was_ended)
    end_like(status.wait_status);
  return comparison.unpaired() || comparison.untraced_threads() ? 1 : 0;
}

} // namespace

Action define_trace_record(CommandLine line) {
  auto arguments = std::make_shared<RecordArguments>();
  line.add_option("-o,--output", arguments->output,
                  "folder of the trace (default: assay.out/TIME-PROGRAM.PID)");
  line.add_option("--log", arguments->choice.log,
                  "what the program logs: values and branches (values), values by block (groups), "
                  "each access by itself (accesses), or nothing (default: values)");
  add_choice(line, arguments->choice);
  add_parts(line, arguments->choice);
  line.set_footer(
      "\nExamples:\n  assay trace record -- ./app --its-own-option\n  assay trace record "
      "--module app -- ./app\n");
  return act_on_program(line, "trace record", arguments->choice.command,
                        [arguments] { return record(*arguments); });
}

Action define_trace_check(CommandLine line) {
  auto arguments = std::make_shared<RecordArguments>();
  line.add_option("--log", arguments->choice.log,
                  "what is compared with each access: values or groups (default: values)");
  add_choice(line, arguments->choice);
  line.set_footer("\nExamples:\n  assay trace check -- ./app --its-own-option\n  assay trace check "
                  "--only main -- ./app\n");
  return act_on_program(line, "trace check", arguments->choice.command,
                        [arguments] { return check(*arguments); });
}

} // namespace cli
