// The edges of a routine's graph by the way that control takes them, which is what has to be patched, or
// instrumented, to see them.
#pragma once

#include "binary/flow_graph.h"

#include <cstdint>
#include <vector>

namespace binary {

enum class EdgeKind : uint8_t {
  next,        // to the instruction behind, without a jump
  jump,        // direct
  taken,       // a branch that is taken
  not_taken,   // … and one that is not
  repeat,      // a string instruction to itself
  table,       // through a table; once, however many entries lead there
  label,       // through a pointer, to a label whose address is taken
  landing_pad, // from a call that throws
  back,        // from a call that returns
};
const char *edge_kind_name(EdgeKind kind);

struct Edge {
  uint32_t from = 0, to = 0; // blocks; a dispatch is none, labels follow their jumps
  EdgeKind kind = EdgeKind::next;
};

// By `from`, in the order in which the block lists its successors.
std::vector<Edge> edges_of(const FlowGraph &graph);

} // namespace binary
