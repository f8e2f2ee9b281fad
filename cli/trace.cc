// `assay trace record|replay|check|info`: the exact sequence of memory accesses of an unmodified program.

#include "base/fail.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/program_command.h"
#include "profile/find_profiles.h"
#include "trace/compare.h"
#include "trace/recording.h"
#include "trace/trace_file.h"

#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTraceFile = "trace.assay";

struct RecordArguments {
  std::string output, log = "groups";
  std::vector<std::string> only, modules, command;
  bool quiet = false;
};

uint32_t log_of(const std::string &name) {
  if (name == "groups")
    return ASSAY_LOG_groups;
  if (name == "accesses")
    return ASSAY_LOG_accesses;
  if (name == "nothing")
    return ASSAY_LOG_nothing;
  base::fail("--log {}: choose groups, accesses or nothing", name);
}

std::string preload_list() {
  std::string library = fs::weakly_canonical(installed_folder() / "libassay_relocated.so").string();
  if (const char *before = std::getenv("LD_PRELOAD"); before && *before)
    library += std::string(":") + before;
  return library;
}

fs::path make_folder(const std::string &wanted, const std::string &program, pid_t pid) {
  const std::time_t now = std::time(nullptr);
  const fs::path folder = !wanted.empty()
                              ? fs::path(wanted)
                              : fs::path(profile::kDefaultFolder) /
                                    fmt::format("{:%Y%m%d-%H%M%S}-{}.{}", fmt::gmtime(now),
                                                fs::path(program).filename().string(), pid);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    base::fail("{}: the folder of the trace cannot be made: {}; choose another one with -o", folder.string(),
               error.message());
  return folder;
}

// Runs the command with its accesses recorded. A failure of ours stops the recording and leaves the program running.
class TracedRun {
public:
  TracedRun(const std::vector<std::string> &command, const trace::RecordingSettings &settings,
            trace::TraceSink &sink)
      : command_(command), recording_(std::make_unique<trace::Recording>(settings, sink)) {}

  ChildStatus run() {
    ChildSettings child;
    child.environment.push_back(recording_->environment());
    child.environment.emplace_back("LD_PRELOAD", preload_list());
    child.meanwhile = [&] {
      if (failure_)
        usleep(10'000);
      else
        guarded([&] { recording_->poll(std::chrono::milliseconds(10)); });
    };
    const ChildStatus status = run_child(command_, child);
    if (!failure_)
      guarded([&] { recording_->finish(status.wait_status); });
    return status;
  }

  const trace::Recording &recording() const { return *recording_; }
  bool failed() const { return failure_; }

private:
  template <class Act> void guarded(Act act) {
    try {
      act();
    } catch (const base::Failure &failure) {
      std::fprintf(stderr, "assay: %s; the recording has stopped, the program goes on\n", failure.what());
      recording_->stop();
      failure_ = true;
    }
  }

  const std::vector<std::string> &command_;
  std::unique_ptr<trace::Recording> recording_;
  bool failure_ = false;
};

int record(const RecordArguments &arguments) {
  if (arguments.command.empty())
    base::fail("trace record: what is to be traced? write `assay trace record -- ./app`");
  const fs::path folder = make_folder(arguments.output, arguments.command.front(), getpid());
  trace::RecordingSettings settings;
  settings.folder = folder;
  settings.log = log_of(arguments.log);
  settings.only = arguments.only;
  settings.modules = arguments.modules;
  const fs::path file = folder / kTraceFile;
  trace::TraceWriter writer(file, static_cast<uint32_t>(getpid()), arguments.command);
  TracedRun run(arguments.command, settings, writer);
  const ChildStatus status = run.run();
  const std::string &program = arguments.command.front();
  if (status.start_error)
    return say_not_started(program, status);
  const auto &progress = run.recording().progress();
  if (!arguments.quiet)
    std::fprintf(stderr,
                 "assay: %s logged, %s stored, by %s of %s functions moved in %s files\n"
                 "assay: trace in %s\nassay: next: assay trace info %s\n",
                 base::format_bytes(double(progress.bytes)).c_str(), base::format_bytes(double(writer.written())).c_str(),
                 base::format_count(double(progress.streams)).c_str(),
                 base::format_count(double(progress.moved)).c_str(),
                 base::format_count(double(progress.files)).c_str(), file.c_str(), folder.c_str());
  end_like(status.wait_status);
}

int check(const RecordArguments &arguments) {
  if (arguments.command.empty())
    base::fail("trace check: which program? write `assay trace check -- ./app`");
  const fs::path folder = fs::temp_directory_path() / fmt::format("assay-trace-check.{}", getpid());
  fs::create_directories(folder);
  trace::RecordingSettings settings;
  settings.folder = folder;
  settings.log = ASSAY_LOG_groups | ASSAY_LOG_accesses;
  settings.only = arguments.only;
  settings.modules = arguments.modules;
  trace::Comparison comparison;
  std::optional<ChildStatus> status;
  {
    TracedRun run(arguments.command, settings, comparison);
    status = run.run();
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (status->start_error)
    return say_not_started(arguments.command.front(), *status);
  if (comparison.difference()) {
    std::fprintf(stderr, "assay: trace check: %s\n", comparison.difference()->c_str());
    return 1;
  }
  if (comparison.compared() == 0) {
    std::fprintf(stderr, "assay: trace check: nothing was traced\n");
    return 1;
  }
  std::fprintf(stderr, "assay: trace check: %s accesses, none differs; %s without counterpart\n",
               base::format_count(double(comparison.compared())).c_str(),
               base::format_count(double(comparison.unpaired())).c_str());
  return comparison.unpaired() ? 1 : 0;
}

struct AskArguments {
  std::string folder, format = "text", output;
};

std::string trace_file_of(const std::string &given) {
  if (!given.empty() && fs::is_regular_file(given))
    return given;
  const fs::path folder = given.empty() ? fs::path(profile::kDefaultFolder) : fs::path(given);
  if (fs::is_regular_file(folder / kTraceFile))
    return folder / kTraceFile;
  std::string latest;
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder, error))
    if (fs::is_regular_file(entry.path() / kTraceFile) && entry.path().string() > latest)
      latest = entry.path().string();
  if (latest.empty())
    base::fail("{}: there is no trace; make one with `assay trace record -- ./app`", folder.string());
  return fs::path(latest) / kTraceFile;
}

// lackey's lines: kind pc? address,size; L, S, M.
class TextOutput : public profile::AccessSink {
public:
  TextOutput(const trace::Trace &trace, std::FILE *to) : trace_(trace), to_(to) {}
  void accesses(const profile::AccessOrigin &origin, std::span<const profile::Access> batch) override {
    if (origin.stream != stream_ || !has_stream_)
      fmt::print(to_, "# thread {}\n", origin.thread);
    stream_ = origin.stream;
    has_stream_ = true;
    for (size_t i = 0; i < batch.size(); i++) {
      const profile::Access &a = batch[i];
      const bool modifies = i + 1 < batch.size() && !a.is_write && batch[i + 1].is_write &&
                            batch[i + 1].address == a.address && batch[i + 1].size == a.size &&
                            trace_.sites()[batch[i + 1].site].offset == trace_.sites()[a.site].offset;
      fmt::print(to_, "{:x} {} {:x},{}\n", trace_.sites()[a.site].offset, modifies ? 'M' : a.is_write ? 'S' : 'L',
                 a.address, a.size);
      i += modifies;
    }
  }

private:
  const trace::Trace &trace_;
  std::FILE *to_;
  uint32_t stream_ = 0;
  bool has_stream_ = false;
};

int replay(const AskArguments &arguments) {
  const trace::Trace trace(trace_file_of(arguments.folder));
  if (!trace.damage().empty())
    std::fprintf(stderr, "assay: %s\n", trace.damage().c_str());
  if (arguments.format != "text")
    base::fail("--format {}: choose text", arguments.format);
  TextOutput output(trace, stdout);
  trace.replay(output);
  return 0;
}

class CountAll : public profile::AccessSink {
public:
  uint64_t reads = 0, writes = 0;
  void accesses(const profile::AccessOrigin &, std::span<const profile::Access> batch) override {
    for (const profile::Access &each : batch)
      (each.is_write ? writes : reads)++;
  }
};

int info(const AskArguments &arguments) {
  const trace::Trace trace(trace_file_of(arguments.folder));
  CountAll counts;
  trace.replay(counts);
  fmt::print("accesses {} ({} reads, {} writes), logged {} bytes, {:.3f} bytes an access, file {}\n",
             counts.reads + counts.writes, counts.reads, counts.writes, trace.logged_bytes(),
             double(trace.logged_bytes()) / double(counts.reads + counts.writes), trace.file_bytes());
  for (size_t f = 0; f < trace.files().size(); f++) {
    const trace::TracedFile &file = trace.files()[f];
    uint64_t moved = 0, accesses = 0, logged = 0, values = 0;
    for (const trace::MovedFunction &function : trace.functions_of(f)) {
      moved += function.why == trace::WhyUnmoved::moved;
      accesses += function.accesses;
      logged += function.logged;
      values += function.values;
    }
    fmt::print("{} moved {} of {} functions, {} of {} accesses, {} values {}\n", file.path, moved,
               trace.functions_of(f).size(), logged, accesses, values, file.why_not);
    for (const trace::MovedFunction &function : trace.functions_of(f))
      if (function.why != trace::WhyUnmoved::moved && function.why != trace::WhyUnmoved::stub)
        fmt::print("  {} {:#x}: {} {}\n", function.name, function.address, trace::why_unmoved_meaning(function.why),
                   function.detail);
  }
  return 0;
}

void add_choice(CLI::App &app, RecordArguments &arguments) {
  app.add_option("--only", arguments.only, "only these functions");
  app.add_option("--module", arguments.modules, "only these files: names without folders");
}

Action define_trace_record(CLI::App &app) {
  auto arguments = std::make_shared<RecordArguments>();
  app.add_option("-o", arguments->output, "folder of the trace (assay.out/TIME-PROGRAM.PID)");
  app.add_option("--log", arguments->log,
                 "what the program logs: groups, accesses (each by itself), nothing (groups)");
  add_choice(app, *arguments);
  app.footer("\nExamples:\n  assay trace record -- ./app --its-own-option\n  assay trace record --module app -- ./app\n");
  return act_on_program(app, "trace record", arguments->command, [arguments] { return record(*arguments); });
}

Action define_trace_check(CLI::App &app) {
  auto arguments = std::make_shared<RecordArguments>();
  add_choice(app, *arguments);
  app.footer("\nExamples:\n  assay trace check -- ./app --its-own-option\n  assay trace check --only main -- ./app\n");
  return act_on_program(app, "trace check", arguments->command, [arguments] { return check(*arguments); });
}

Action define_trace_replay(CLI::App &app) {
  auto arguments = std::make_shared<AskArguments>();
  app.add_option("DIR", arguments->folder, "folder of the trace (default: the latest in assay.out)");
  app.add_option("--format", arguments->format, "text (text)");
  app.footer("\nExamples:\n  assay trace replay | head\n  assay trace replay DIR > accesses.txt\n");
  return [arguments](const Words &) { return replay(*arguments); };
}

Action define_trace_info(CLI::App &app) {
  auto arguments = std::make_shared<AskArguments>();
  app.add_option("DIR", arguments->folder, "folder of the trace (default: the latest in assay.out)");
  app.footer("\nExamples:\n  assay trace info\n  assay trace info DIR\n");
  return [arguments](const Words &) { return info(*arguments); };
}

} // namespace

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
  add("record", "run a program, named after --, and store the trace of its accesses", define_trace_record);
  add("check", "run a program, and compare what is regenerated with each access as it was made", define_trace_check);
  add("replay", "write the accesses of a trace", define_trace_replay);
  add("info", "what a trace holds, and what it lacks", define_trace_info);
  app.footer("\nExamples:\n  assay trace record -- ./app --its-own-option\n  assay trace check -- ./app\n");
  return [parts](const Words &after_dashes) {
    for (const Part &part : *parts)
      if (part.app->parsed())
        return part.action(after_dashes);
    return 2;
  };
}

} // namespace cli
