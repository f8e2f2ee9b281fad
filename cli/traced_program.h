// What a trace, or a program that was traced as it ran, says of itself, as analyses take it.
#pragma once

#include "analyze/traced_program.h"
#include "cli/command.h"
#include "trace/live_accesses.h"
#include "trace/trace_file.h"

#include <string>
#include <vector>

namespace cli {

inline constexpr const char *kTraceFile = "trace.assay"; // in a trace's folder

// The file of the trace that a user means: a file, a trace's folder, or a folder of them, of which
// it is the latest; assay.out if `given` is empty.
std::string trace_file_of(const std::string &given);

// Declares --interleave, and what it means.
void add_interleave(CommandLine line, bool &interleave);
trace::ThreadOrder order_of(bool interleave);

analyze::TracedProgram traced_program(const trace::Trace &trace);
analyze::TracedProgram traced_program(const trace::LiveAccesses &live,
                                      const std::vector<std::string> &command);

} // namespace cli
