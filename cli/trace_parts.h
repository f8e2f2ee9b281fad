// The parts of `assay trace`.
#pragma once

#include "cli/command.h"
#include "cli/command_parts.h"

#include <vector>

namespace cli {

Action define_trace_record(CLI::App &app);
Action define_trace_check(CLI::App &app);
Action define_trace_replay(CLI::App &app);
Action define_trace_info(CLI::App &app);
Action define_trace_skeleton(CLI::App &app);
Action define_trace_run(CLI::App &app);
std::vector<CommandPart> trace_answers(); // counts, cache, …: one for each analysis

} // namespace cli
