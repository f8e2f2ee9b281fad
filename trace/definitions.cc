// A routine is walked block by block; a register is the node that was made last. At each block that
// is no start a register is a join of what its predecessors leave, also where they leave the same:
// a cut does not mind.

#include "trace/definitions.h"

#include "binary/effects.h"

#include <algorithm>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;

class Definer {
public:
  Definer(const FlowGraph &graph, const PlanShape &shape) : graph_(graph), shape_(shape) {}

  Definitions definitions() {
    made_.nodes.resize(2);
    made_.nodes[kUnknown].is_given = true;
    made_.result_of.assign(graph_.code.uops.size(), kNoNode);
    made_.end.resize(graph_.blocks.size());
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      begin_block(b);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (!graph_.blocks[b].is_dispatch())
        define(b);
    made_.is_complete &= made_.nodes.size() <= kMaxNodes;
    if (made_.is_complete) {
      join();
      widths();
    }
    return std::move(made_);
  }

private:
  NodeId add(Node node) {
    made_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(made_.nodes.size() - 1);
  }

  void begin_block(uint32_t b) {
    auto &at = made_.begin.emplace_back();
    at.fill(kUnknown);
    const Block &block = graph_.blocks[b];
    for (uint8_t reg = 0; reg < kGeneralRegisters; reg++) {
      Node node;
      node.is_given = !block.is_dispatch() && shape_.is_start[b];
      node.times = shape_.times[b];
      node.reg = reg;
      // What is logged in a loop that is counted would have to be in each iteration.
      node.logged_bytes = block.is_dispatch() || shape_.is_counted(b) ? 0 : 8;
      at[reg] = add(node);
    }
    Node flags;
    flags.is_given = !block.is_dispatch() && shape_.is_start[b];
    flags.times = shape_.times[b];
    at[ASSAY_REG_FLAGS] = add(flags);
  }

  void begin_within(uint32_t b, uint32_t index) {
    auto &begin = made_.within[index];
    begin.fill(kUnknown);
    for (uint8_t reg = 0; reg < kGeneralRegisters; reg++) {
      Node node;
      node.is_given = true;
      node.times = shape_.times[b];
      node.reg = reg;
      node.logged_bytes = 8;
      begin[reg] = add(node);
      now_[reg] = begin[reg];
    }
    now_[ASSAY_REG_FLAGS] = kUnknown;
  }

  NodeId node_of(unsigned reg) const {
    if (reg == ASSAY_UOP_IMMEDIATE || reg == ASSAY_REG_ZERO || reg == ASSAY_REG_BIAS ||
        reg == ASSAY_REG_FS || reg == ASSAY_REG_CONTROL)
      return kFree;
    return reg < kPlanVariables ? now_[reg] : kUnknown;
  }

  void define(uint32_t b) {
    const Block &block = graph_.blocks[b];
    now_.fill(kUnknown);
    for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++)
      now_[reg] = made_.begin[b][reg];
    for (uint32_t i = block.first; i < block.first + block.count; i++) {
      if (starts_within(graph_, block, i))
        begin_within(b, i);
      const Instruction &instruction = graph_.code.instructions[i];
      if (instruction.repeats && instruction.accesses)
        define_repeated(b, instruction, i);
      else
        define(b, instruction, i);
    }
    made_.end[b] = now_;
    if (shape_.is_counted(b)) // how far it goes is told by where it begins
      made_.uses.push_back({{made_.begin[b][shape_.counter_of[b]], kFree, kFree}, false, b});
  }

  void define(uint32_t b, const Instruction &instruction, uint32_t index) {
    const auto uops = graph_.code.uops_of(instruction);
    const auto accesses = graph_.code.accesses_of(instruction);
    std::array<NodeId, kGeneralRegisters> before;
    std::copy_n(now_.begin(), kGeneralRegisters, before.begin());
    for (uint32_t u = 0; u < uops.size(); u++) {
      const assay_uop &uop = uops[u];
      for (const Access &access : accesses)
        if (access.has_address() && !access.masked && access.size &&
            access.uop == instruction.uop + u)
          made_.uses.push_back({operands_of(uop), false, b});
      if (uop.op == ASSAY_UOP_branch) {
        if (instruction.flow != Flow::branch) {
          made_.is_complete = false;
          return;
        }
        made_.branch_use[b] = made_.uses.size();
        made_.uses.push_back({{node_of(uop.b), kFree, kFree}, true, b});
        continue;
      }
      if (!binary::has_result(uop) || uop.dst >= kPlanVariables || uop.dst == ASSAY_REG_ZERO)
        continue;
      Node node;
      node.times = shape_.times[b];
      if (binary::reads_memory(uop)) {
        node.is_given = true;
        node.bytes = uop.width;
      } else if (!is_computed(uop)) {
        now_[uop.dst] = given(b, 8);
        made_.result_of[instruction.uop + u] = now_[uop.dst];
        continue;
      } else {
        const bool is_zero = uop.a == uop.b && (uop.op == ASSAY_UOP_xor || uop.op == ASSAY_UOP_sub);
        if (!is_zero)
          for (NodeId input : operands_of(uop))
            if (input != kFree)
              node.inputs.push_back(input);
        node.bytes = assay_uop_has_width(uop.op) ? uop.width : 8;
      }
      now_[uop.dst] = made_.result_of[instruction.uop + u] = add(std::move(node));
    }
    if (instruction.opaque) {
      for (unsigned reg = 0; reg < kGeneralRegisters; reg++)
        if (graph_.code.touched_by(instruction).writes & binary::bit(reg))
          made_.opaque[{index, reg}] = now_[reg] = given(b, 8);
      if (graph_.code.touched_by(instruction).writes & binary::bit(ASSAY_REG_FLAGS))
        now_[ASSAY_REG_FLAGS] = kUnknown;
    }
    if (instruction.is_call()) // what follows begins with a start
      for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++)
        now_[reg] = kUnknown;
    if (instruction.flow == Flow::next && !shape_.is_counted(b))
      for (uint8_t reg = 0; reg < kGeneralRegisters; reg++)
        if (now_[reg] != before[reg] && now_[reg] > kUnknown)
          can_log(now_[reg], reg, instruction, uops);
    for (unsigned reg = ASSAY_REG_TEMPORARIES; reg < kPlanVariables; reg++)
      now_[reg] = kUnknown;
  }

  NodeId given(uint32_t b, uint8_t bytes) {
    Node node;
    node.is_given = true;
    node.times = shape_.times[b];
    node.bytes = bytes;
    return add(node);
  }

  // A register's value may be logged behind its instruction; so may what it was made of, where that is its low bytes.
  void can_log(NodeId node, uint8_t reg, const Instruction &instruction,
               std::span<const assay_uop> uops) {
    made_.nodes[node].reg = reg;
    made_.nodes[node].logged_bytes = made_.nodes[node].bytes;
    for (uint32_t u = 0; u < uops.size(); u++) {
      if (made_.result_of[instruction.uop + u] != node)
        continue;
      const assay_uop &uop = uops[u];
      NodeId part = kNoNode;
      unsigned bytes = 0;
      if (uop.op == ASSAY_UOP_sign_extend) {
        part = node_before(instruction, u, uop.a);
        bytes = static_cast<unsigned>(64 - uop.i) / 8;
      } else if (uop.op == ASSAY_UOP_put8 || uop.op == ASSAY_UOP_put16) {
        part = node_before(instruction, u, uop.b);
        bytes = uop.op == ASSAY_UOP_put8 ? 1 : 2;
      } else if (uop.op == ASSAY_UOP_copy && uop.b == ASSAY_REG_ZERO) {
        part = node_before(instruction, u, uop.a);
        bytes = uop.width;
      }
      if (part != kNoNode && !made_.nodes[part].logged_bytes && made_.nodes[part].bytes <= bytes &&
          made_.nodes[part].is_given) {
        made_.nodes[part].reg = reg;
        made_.nodes[part].logged_bytes = made_.nodes[part].bytes;
      }
    }
  }

  // What the instruction itself made of a temporary before one of its micro-ops.
  NodeId node_before(const Instruction &instruction, uint32_t u, unsigned reg) const {
    if (reg < ASSAY_REG_TEMPORARIES || reg >= kPlanVariables)
      return kNoNode;
    const auto uops = graph_.code.uops_of(instruction);
    while (u-- > 0)
      if (binary::has_result(uops[u]) && uops[u].dst == reg)
        return made_.result_of[instruction.uop + u];
    return kNoNode;
  }

  std::array<NodeId, 3> operands_of(const assay_uop &uop) const {
    std::array<NodeId, 3> nodes = {node_of(uop.a), kFree, kFree};
    if (!binary::has_immediate(uop)) {
      nodes[1] = node_of(uop.b);
      nodes[2] = node_of(uop.c);
    }
    return nodes;
  }

  void define_repeated(uint32_t b, const Instruction &instruction, uint32_t index) {
    for (const Access &access : graph_.code.accesses_of(instruction)) {
      if (!access.has_address() || access.masked || !access.size)
        made_.is_complete = false;
      else
        made_.uses.push_back({operands_of(graph_.code.uops[access.uop]), false, b});
    }
    made_.uses.push_back({{now_[ASSAY_REG_RCX], kFree, kFree}, false, b});
    std::array<NodeId, kGeneralRegisters> before;
    std::copy_n(now_.begin(), kGeneralRegisters, before.begin());
    auto &made = made_.repeated[index];
    made.fill(kNoNode);
    for (const assay_uop &uop : graph_.code.uops_of(instruction)) {
      if (!binary::has_result(uop) || uop.dst > ASSAY_REG_FLAGS)
        continue;
      if (uop.dst == ASSAY_REG_FLAGS) {
        now_[uop.dst] = kUnknown;
        continue;
      }
      if (made[uop.dst] != kNoNode)
        continue;
      const NodeId node = given(b, 8);
      made_.nodes[node].reg = static_cast<uint8_t>(uop.dst);
      made_.nodes[node].logged_bytes = 8;
      made[uop.dst] = now_[uop.dst] = node;
    }
    if (instruction.flow != Flow::next)
      made_.is_complete = false;
  }

  // What comes in at blocks that are no starts.
  void join() {
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Block &block = graph_.blocks[b];
      if (!block.is_dispatch() && shape_.is_start[b])
        continue;
      for (uint32_t from : block.predecessors)
        for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++) {
          const NodeId input =
              graph_.blocks[from].is_dispatch() ? made_.begin[from][reg] : made_.end[from][reg];
          auto &inputs = made_.nodes[made_.begin[b][reg]].inputs;
          if (std::find(inputs.begin(), inputs.end(), input) == inputs.end())
            inputs.push_back(input);
        }
    }
  }

  // Of joins: as many bytes as what comes in has.
  void widths() {
    std::vector<NodeId> joins;
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (graph_.blocks[b].is_dispatch() || !shape_.is_start[b])
        for (unsigned reg = 0; reg < kGeneralRegisters; reg++) {
          joins.push_back(made_.begin[b][reg]);
          made_.nodes[joins.back()].bytes = 1;
        }
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId join : joins)
        for (NodeId input : made_.nodes[join].inputs)
          if (made_.nodes[input].bytes > made_.nodes[join].bytes) {
            made_.nodes[join].bytes = made_.nodes[input].bytes;
            changed = true;
          }
    }
    for (NodeId join : joins)
      if (made_.nodes[join].logged_bytes)
        made_.nodes[join].logged_bytes = made_.nodes[join].bytes;
  }

  const FlowGraph &graph_;
  const PlanShape &shape_;
  Definitions made_;
  std::array<NodeId, kPlanVariables> now_ = {}; // where the walk is
};

} // namespace

Definitions define(const FlowGraph &graph, const PlanShape &shape) {
  return Definer(graph, shape).definitions();
}

} // namespace trace
