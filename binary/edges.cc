// See the header.

#include "binary/edges.h"

namespace binary {
namespace {

EdgeKind kind_of(const FlowGraph &graph, const Instruction &last, uint32_t to) {
  uint64_t target = graph.instructions_of(graph.blocks[to]).front().address;
  bool is_next = target == last.end();
  switch (last.flow) {
  case Flow::jump: return EdgeKind::jump;
  // One that leads to the next instruction either way is not taken for whoever looks at blocks.
  case Flow::branch: return is_next ? EdgeKind::not_taken : EdgeKind::taken;
  case Flow::indirect_jump: return EdgeKind::table;
  case Flow::call:
  case Flow::indirect_call: return is_next ? EdgeKind::back : EdgeKind::landing_pad;
  default:
    return last.repeats && target == last.address && !is_next ? EdgeKind::repeat : EdgeKind::next;
  }
}

} // namespace

const char *edge_kind_name(EdgeKind kind) {
  switch (kind) {
  case EdgeKind::next: return "next";
  case EdgeKind::jump: return "jump";
  case EdgeKind::taken: return "taken";
  case EdgeKind::not_taken: return "not_taken";
  case EdgeKind::repeat: return "repeat";
  case EdgeKind::table: return "table";
  case EdgeKind::label: return "label";
  case EdgeKind::landing_pad: return "landing_pad";
  case EdgeKind::back: return "back";
  }
  return "";
}

std::vector<Edge> edges_of(const FlowGraph &graph) {
  std::vector<Edge> edges;
  for (uint32_t from = 0; from < graph.blocks.size(); from++) {
    const Block &block = graph.blocks[from];
    if (block.is_dispatch())
      continue;
    for (uint32_t to : block.successors)
      if (!graph.blocks[to].is_dispatch())
        edges.push_back({from, to, kind_of(graph, graph.last_of(block), to)});
      else
        for (uint32_t label : graph.blocks[to].successors)
          edges.push_back({from, label, EdgeKind::label});
  }
  return edges;
}

} // namespace binary
