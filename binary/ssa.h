// Static single assignment: each value that a routine makes, where it is made, and what it is made of.
//
// Variables are the general registers, the flags, each vector and mask register as a whole, and all
// memory (binary/code.h). Temporaries of micro-ops live within their instruction and need no joins.
// Calls keep rbx, rbp, r12 to r15 and rsp, as the System V ABI says, and define all other registers,
// the flags and memory anew.
#pragma once

#include "base/strong_id.h"
#include "binary/dominators.h"
#include "binary/flow_graph.h"
#include "binary/loops.h"

#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

namespace binary {

using ValueId = base::Id<struct ValueTag>;

enum class ValueKind : uint8_t {
  entry, // what a variable holds when the routine begins
  join,  // of the predecessors' values: `operands`
  micro_op,
  call,   // what a call leaves, and is read
  opaque, // what an opaque instruction leaves, and is read
};

struct Value {
  ValueKind kind = ValueKind::entry;
  uint8_t variable = kVariables; // kVariables: a temporary
  uint32_t node = 0;
  union {
    uint32_t uop = 0;       // of a micro_op, in FlowGraph::code
    uint32_t instruction;   // of a call or opaque, in FlowGraph::code
    uint32_t first_operand; // of a join, in Ssa::join_operands
  };
};
static_assert(sizeof(Value) == 12); // there are two for each instruction

// What a micro-op reads, as values; not known() where it reads nothing or a constant.
struct UopValues {
  ValueId a, b, c;
  ValueId result;
};
static_assert(sizeof(UopValues) == 16); // nearly two for each instruction

// A routine with its graph made reducible, where that is possible: nodes are blocks or copies of them.
struct Node {
  static constexpr uint32_t kNoBlock = UINT32_MAX;
  // Of the root, of what is before the header of a loop, and of a dispatch: none.
  uint32_t block = kNoBlock;
  uint32_t first_uop = 0;             // its micro-ops: Ssa::uops[first_uop], …
  uint32_t first_join = 0, joins = 0; // its joins: Ssa::values[first_join], …
};

struct Ssa {
  static constexpr uint32_t kRoot = 0; // a node before all entries
  std::vector<Node> nodes;
  Edges successors;
  AdjacencyLists predecessors;
  Dominators dominators;
  Loops loops;
  std::vector<Value> values;
  std::vector<UopValues> uops;
  auto joins_of(uint32_t node) const {
    return std::views::iota(nodes[node].first_join, nodes[node].first_join + nodes[node].joins) |
           std::views::transform([](uint32_t value) { return ValueId{value}; });
  }
  // Of a join: the values from each of predecessors[node], in that order.
  std::span<const ValueId> operands(ValueId join) const {
    const Value &value = values[join.v];
    return {join_operands.data() + value.first_operand, predecessors[value.node].size()};
  }
  // The place in `uops` of the micro-op that makes a value.
  uint32_t place_of(const FlowGraph &graph, const Value &made) const {
    const Node &node = nodes[made.node];
    return node.first_uop + made.uop - graph.code.instructions[graph.blocks[node.block].first].uop;
  }

  // What the micro-op at this place in `uops`, a store, writes; not known() where that is in no general register.
  ValueId stored_at(uint32_t place) const;

  // In FlowGraph::code: which makes a value that is no join and no entry.
  uint32_t instruction_of(const FlowGraph &graph, const Value &made) const;
  // Where a value is made that is no entry: of a join, the first instruction behind it.
  uint64_t address_of(const FlowGraph &graph, const Value &made) const;
  // Of the first instruction that control comes to from the begin of a node; 0 if there is none.
  uint64_t first_address(const FlowGraph &graph, uint32_t node) const;

  // A node with instructions that control comes to next.
  uint32_t next_with_block(uint32_t node) const {
    while (nodes[node].block == Node::kNoBlock && !successors[node].empty())
      node = successors[node].front();
    return node;
  }

  std::vector<ValueId> join_operands;
  struct Stored {
    uint32_t place;
    ValueId value;
  };
  std::vector<Stored> stored; // by place
};

Ssa single_assignment(const FlowGraph &graph);

} // namespace binary
