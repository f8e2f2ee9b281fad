// The graph of a function as it is shown: blocks, edges with their kinds, tables.
#pragma once

#include "analyze/explain.h"
#include "binary/flow_graph.h"

namespace analyze {

void explain_graph(const binary::FlowGraph &graph, ExplainedFunction &function);

} // namespace analyze
