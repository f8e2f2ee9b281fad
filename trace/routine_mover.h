// Moves one routine; of moved_code.cc alone.
#pragma once

#include "binary/flow_graph.h"
#include "trace/module_code.h"
#include "trace/movability.h"

namespace trace {

// Appends the routine's moved code to the module, with what overwrites its original and with the unwind tables of
// the entries that cover it. `needs`: the answer of Movability, that it can be moved. Counts its accesses and
// values in `function`.
void move_routine(ModuleCode &module, const binary::Routine &routine,
                  const binary::FlowGraph &graph, MovabilityAnswer needs, MovedFunction &function);

} // namespace trace
