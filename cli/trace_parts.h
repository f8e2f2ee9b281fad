// The parts of `assay trace`.
#pragma once

#include "cli/command.h"

#include <string>

namespace cli {

inline constexpr const char *kTraceFile = "trace.assay"; // in a trace's folder

Action define_trace_record(CLI::App &app);
Action define_trace_check(CLI::App &app);
Action define_trace_replay(CLI::App &app);
Action define_trace_info(CLI::App &app);
Action define_trace_skeleton(CLI::App &app);

// The file of the trace that the user named: a file, a folder, or nothing for the latest. Throws Failure if there is none.
std::string trace_file_of(const std::string &given);

} // namespace cli
