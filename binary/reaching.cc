// Up the dominator tree: what a node does not define, it has from the node that dominates it, unless
// definitions meet in between; there a join stands, or the variable is dead. What a call leaves has no
// value if nobody reads it.
//
// A table by node and variable would answer at once and is as large as the graph times the variables;
// whoever inserts code asks at few places.

#include "binary/reaching.h"

#include "binary/effects.h"

#include <optional>

namespace binary {
namespace {

// The last value that an instruction gives the variable, not known() if nobody reads it; nullopt if it gives none.
std::optional<ValueId> made_by(const FlowGraph &graph, const Ssa &ssa, uint32_t node,
                               uint32_t index, uint32_t at, unsigned variable) {
  const Instruction &instruction = graph.code.instructions[index];
  bool by_call = instruction.is_call() && left_by_call(instruction) & bit(variable);
  bool opaque = graph.code.touched_by(instruction).writes & bit(variable);
  if (by_call || opaque) {
    // All vectors and masks of one call or opaque instruction share a value.
    ValueId wide;
    bool is_wide = variable >= kMasks && variable < kMemory;
    for (uint32_t v = 0; v < ssa.values.size(); v++) {
      const Value &value = ssa.values[v];
      if (value.node != node || value.kind != (by_call ? ValueKind::call : ValueKind::opaque) ||
          value.instruction != index)
        continue;
      if (value.variable == variable)
        return ValueId{v};
      if (is_wide && value.variable >= kMasks && value.variable < kMemory)
        wide = {v};
    }
    return wide;
  }
  std::optional<ValueId> found;
  for (uint32_t i = 0; i < instruction.uops; i++)
    if (ValueId result = ssa.uops[at + i].result;
        result.known() && ssa.values[result.v].variable == variable)
      found = result;
  return found;
}

// Of the instructions of the node before number `end`, as made_by().
std::optional<ValueId> made_in(const FlowGraph &graph, const Ssa &ssa, uint32_t node, uint32_t end,
                               unsigned variable) {
  std::optional<ValueId> found;
  uint32_t block = ssa.nodes[node].block;
  if (block != Node::kNoBlock) {
    uint32_t at = ssa.nodes[node].first_uop;
    const Block &of = graph.blocks[block];
    for (uint32_t i = of.first; i < of.first + of.count && i < end; i++) {
      const Instruction &instruction = graph.code.instructions[i];
      bool returns_stack = variable == ASSAY_REG_RSP && instruction.is_call() &&
                           instruction.kept & register_bit(ASSAY_REG_RSP);
      if (!returns_stack) // the push of a call is undone when it is back
        if (auto made = made_by(graph, ssa, node, i, at, variable))
          found = made;
      at += instruction.uops;
    }
  }
  if (!found)
    for (ValueId join : ssa.joins_of(node))
      if (ssa.values[join.v].variable == variable)
        found = join;
  return found;
}

} // namespace

ValueId value_before(const FlowGraph &graph, const Ssa &ssa, uint32_t node, uint32_t index,
                     unsigned variable) {
  for (uint32_t end = index;; end = UINT32_MAX) {
    if (auto found = made_in(graph, ssa, node, end, variable))
      return *found;
    if (node == Ssa::kRoot)
      break;
    uint32_t above = ssa.dominators.immediate[node];
    // Definitions that meet here, or between the two, without a join: nobody reads the variable.
    if (ssa.predecessors[node].size() > 1)
      for (uint32_t from : ssa.predecessors[node])
        for (uint32_t at = from; at != above; at = ssa.dominators.immediate[at]) {
          if (at == Ssa::kRoot)
            break;
          if (made_in(graph, ssa, at, UINT32_MAX, variable))
            return {};
        }
    node = above;
  }
  for (uint32_t v = 0; v < ssa.values.size() && v < kVariables; v++)
    if (ssa.values[v].kind == ValueKind::entry && ssa.values[v].variable == variable)
      return {v};
  return {};
}

} // namespace binary
