// What in a routine's code stands in the way of executing it at another place. Of routines whose
// control flow is understood; whether one can be moved, trace/movability.h answers.
#pragma once

#include "binary/flow_graph.h"

namespace binary {

// An instruction begins within another one.
bool has_overlaps(const FlowGraph &graph);
// A jump table has entries that lead elsewhere than into the routine.
bool has_shared_table(const Routine &routine, const FlowGraph &graph);
// It sets the base of fs or gs, as only what starts threads does.
bool changes_segments(const FlowGraph &graph);

} // namespace binary
