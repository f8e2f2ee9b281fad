// What commands share that run a program while its accesses are logged: `assay trace record|check|run`.
#pragma once

#include "cli/child.h"
#include "cli/command.h"
#include "trace/partial.h"
#include "trace/recording.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace cli {

// What is logged of which functions of which program.
struct TraceChoice {
  std::string log = "values";
  std::vector<std::string> only, modules, command;
  std::string start_after, stop_after, window, start_at, stop_at;
  bool on_signal = false;
};
// Declares --only and --module.
void add_choice(CommandLine line, TraceChoice &choice);
// Moved code is written to the folder while the program runs. Throws Failure.
trace::RecordingSettings settings_of(const TraceChoice &choice,
                                     const std::filesystem::path &folder);

// Declares --start-after, --stop-after, --window, --start-at, --stop-at and --on-signal. parts_of()
// throws Failure if they exclude each other.
void add_parts(CommandLine line, TraceChoice &choice);
trace::TraceParts parts_of(const TraceChoice &choice);
// From here on SIGUSR1 is --on-signal's, if that was given; says so.
void take_switches(const TraceChoice &choice);

// Runs the command with its accesses recorded. A failure of ours stops the recording and leaves the program running.
class TracedRun {
public:
  TracedRun(const std::vector<std::string> &command, const trace::RecordingSettings &settings,
            trace::TraceSink &sink);
  ChildStatus run();
  const trace::Recording &recording() const { return *recording_; }
  bool failed() const { return failure_; }
  // The names of what was traced, for a sentence: "sh, sort". What they start may be out of reach,
  // and is not among them.
  std::string programs() const;

private:
  template <class Act> void guarded(Act act);

  const std::vector<std::string> &command_;
  std::unique_ptr<trace::Recording> recording_;
  bool failure_ = false;
};

// Why nothing of the program was traced, where the program itself has not said it.
void say_unreached(const std::string &program, const trace::Recording &recording, int wait_status);

} // namespace cli
