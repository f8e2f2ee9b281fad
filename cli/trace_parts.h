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

} // namespace cli
