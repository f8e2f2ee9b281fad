// The parts of `assay trace`.
#pragma once

#include "cli/command.h"
#include "cli/command_parts.h"

#include <vector>

namespace cli {

Action define_trace_record(CommandLine line);
Action define_trace_check(CommandLine line);
Action define_trace_replay(CommandLine line);
Action define_trace_info(CommandLine line);
Action define_trace_skeleton(CommandLine line);
Action define_trace_instrument(CommandLine line);
Action define_trace_run(CommandLine line);
std::vector<CommandPart> trace_answers(); // counts, cache, …: one for each analysis

} // namespace cli
