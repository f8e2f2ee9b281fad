// Which variables may still be read at a point of a routine: what an inserted instruction must leave as it
// is.
#pragma once

#include "binary/flow_graph.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace binary {

// May err towards live, never towards dead, with two things taken from the ABI: the flags hold nothing
// where a function is called or left. Callees and callers may read anything else, unless more is known.
class Liveness {
public:
  // What is known of general registers beyond the ABI: those that a call's callee, or who is jumped
  // to in another routine, does not read as its caller left them; and those that hold nothing for
  // who called this routine.
  struct Known {
    std::function<RegisterSet(const Instruction &call)> unread;
    RegisterSet dead_at_return = 0;
  };

  explicit Liveness(const FlowGraph &graph);
  Liveness(const FlowGraph &graph, Known known);

  // Where the block begins.
  VariableSet at(uint32_t block) const { return live_in_[block]; }
  // Before instruction number `index` of the graph's code, which is one of the block's.
  VariableSet before(uint32_t block, uint32_t index) const;
  // Before each of the block's instructions, and behind the last.
  std::vector<VariableSet> along(uint32_t block) const;

private:
  VariableSet at_end(uint32_t block) const;
  VariableSet before_instruction(const Instruction &instruction, VariableSet after) const;

  const FlowGraph &graph_;
  Known known_;
  std::vector<VariableSet> live_in_; // by block
};

} // namespace binary
