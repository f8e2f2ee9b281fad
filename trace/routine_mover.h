// Moves one routine; of moved_code.cc alone.
#pragma once

#include "binary/flow_graph.h"
#include "trace/module_code.h"

#include <vector>

namespace trace {

// Appends the routine's moved code, what overwrites its original, and the unwind table of `frames`,
// the entries that cover it. no_room, and nothing is appended, if the original cannot be
// overwritten. Counts its accesses and values in `function`.
WhyUnmoved move_routine(ModuleCode &module, const binary::Routine &routine,
                        const binary::FlowGraph &graph,
                        const std::vector<const image::UnwindRange *> &frames,
                        MovedFunction &function);

} // namespace trace
