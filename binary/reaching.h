// Which value a variable holds at a point, of those that single assignment names.
#pragma once

#include "binary/ssa.h"

namespace binary {

// Before instruction number `index` of the graph's code in a node that has it; index behind the node's last
// one is its end. Not known() for a variable that nobody reads, and that a call or an opaque instruction leaves, or whose
// definitions meet: single assignment makes no values and no joins of what is dead.
ValueId value_before(const FlowGraph &graph, const Ssa &ssa, uint32_t node, uint32_t index,
                     unsigned variable);

} // namespace binary
