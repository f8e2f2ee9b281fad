// Backwards over the blocks until nothing changes; one word a block.
//
// A block is looked at again only if a successor's set has changed. Sets of the beginnings of
// blocks are kept; what is live before an instruction is computed from its block's end when it is
// asked, and by along() for the whole block in one pass.
//
// The traps all err towards live. A repeated string instruction may do nothing, so what it writes
// stays live before it. An instruction that keeps a part of what it writes reads it. Memory is
// always live. A callee may read every register but the flags, and so may whoever a routine returns
// or jumps to, unless Known says more.

#include "binary/liveness.h"

#include "binary/effects.h"

namespace binary {
namespace {

constexpr VariableSet kAll = bit(kVariables) - 1;
constexpr VariableSet kAcrossCalls = kAll & ~bit(kFlags);

} // namespace

VariableSet Liveness::before_instruction(const Instruction &instruction, VariableSet after) const {
  Effects effects = effects_of(graph_.code, instruction);
  if (instruction.is_call()) { // what comes back is what the callee left; it may read all
    const VariableSet unread = known_.unread ? known_.unread(instruction) : RegisterSet{0};
    return (kAcrossCalls & ~unread) | (after & unread) | effects.reads;
  }
  // A repeated string instruction may do nothing. Others that keep a part of what they write read it.
  VariableSet replaced = instruction.repeats ? 0 : effects.writes;
  return (after & ~replaced) | effects.reads | bit(kMemory);
}

VariableSet Liveness::at_end(uint32_t block) const {
  const Block &from = graph_.blocks[block];
  VariableSet live = 0;
  for (uint32_t to : from.successors)
    live |= live_in_[to];
  if (from.is_dispatch())
    return live;
  const Instruction &last = graph_.last_of(from);
  bool leaves = from.leaves != Block::kStays || last.flow == Flow::ret || last.flow == Flow::jump ||
                last.flow == Flow::indirect_jump || last.flow == Flow::stop;
  // Where an indirect jump leads is known in routines that are understood, unless it may be a tail call as well.
  const bool is_known = last.flow != Flow::indirect_jump ||
                        (graph_.why_not == WhyNot::understood && !graph_.is_tail_jump(last));
  bool stays = !from.successors.empty() && from.leaves == Block::kStays && is_known;
  if (last.flow == Flow::ret)
    return live | (kAcrossCalls & ~VariableSet{known_.dead_at_return});
  if (!leaves || stays)
    return live;
  // Who is jumped to may read what a callee may, and comes back to this routine's caller.
  const bool is_jump = last.flow == Flow::jump || last.flow == Flow::indirect_jump;
  const VariableSet unread =
      is_jump && known_.unread ? known_.unread(last) & known_.dead_at_return : RegisterSet{0};
  return live | (kAcrossCalls & ~unread);
}

Liveness::Liveness(const FlowGraph &graph) : Liveness(graph, Known{}) {}

Liveness::Liveness(const FlowGraph &graph, Known known)
    : graph_(graph), known_(std::move(known)), live_in_(graph.blocks.size(), 0) {
  std::vector<uint32_t> work;
  std::vector<bool> queued(graph.blocks.size(), true);
  for (uint32_t block = 0; block < graph.blocks.size(); block++)
    work.push_back(block);
  while (!work.empty()) {
    uint32_t block = work.back();
    work.pop_back();
    queued[block] = false;
    VariableSet live = at_end(block);
    const Block &of = graph.blocks[block];
    for (uint32_t i = of.count; i-- > 0;)
      live = before_instruction(graph.code.instructions[of.first + i], live);
    if (live == live_in_[block])
      continue;
    live_in_[block] = live;
    for (uint32_t from : of.predecessors)
      if (!queued[from]) {
        queued[from] = true;
        work.push_back(from);
      }
  }
}

std::vector<VariableSet> Liveness::along(uint32_t block) const {
  const Block &of = graph_.blocks[block];
  std::vector<VariableSet> live(of.count + 1);
  live[of.count] = at_end(block);
  for (uint32_t i = of.count; i-- > 0;)
    live[i] = before_instruction(graph_.code.instructions[of.first + i], live[i + 1]);
  return live;
}

VariableSet Liveness::before(uint32_t block, uint32_t index) const {
  VariableSet live = at_end(block);
  const Block &of = graph_.blocks[block];
  for (uint32_t i = of.first + of.count; i-- > index;)
    live = before_instruction(graph_.code.instructions[i], live);
  return live;
}

} // namespace binary
