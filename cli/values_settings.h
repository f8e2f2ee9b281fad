// What `assay values record` is asked for, and what that means for a recording.
#pragma once

#include "values/recording.h"

#include <chrono>
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
// What is sampled: the name of the program, of the process, or "system".
std::string sampled_name(const RecordArguments &arguments);
// The words of --record, for its help and for messages.
std::string kind_words();

} // namespace cli
