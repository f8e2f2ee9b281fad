// `assay values record`: of the command `values` alone.
#pragma once

#include "cli/command.h"
#include "values/recording.h"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cli {

// As users write them.
struct RecordArguments {
  std::string output, hertz = "5k", duration, collector = "auto", record, hotlist = "space-saving",
                      callers;
  std::string rotate = "1min", disk = "256MiB"; // of a daemon
  std::optional<unsigned> instructions;
  unsigned skip = 0;
  uint64_t seed = 1;
  pid_t pid = 0;
  bool all = false, conflicts = false, fixed = false, latency = false, daemon = false,
       user_code = false, even = false;
  std::vector<std::string> command;
};

// Throw Failure where what is asked for makes no sense.
values::RecordingSettings settings_of(const RecordArguments &arguments);
// Of --duration, if it is given.
std::chrono::microseconds duration_of(const RecordArguments &arguments);
profile::Process process_of(const RecordArguments &arguments, pid_t pid);
// From the first SIGINT or SIGTERM on `asked_to_stop` is set.
extern volatile std::sig_atomic_t asked_to_stop;
void stop_when_asked();

// `assay values record -a --daemon`: records until it is asked to stop. The status.
int record_as_daemon(const RecordArguments &arguments);

Action define_values_record(CommandLine line);

} // namespace cli
