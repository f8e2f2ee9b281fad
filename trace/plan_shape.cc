// A loop that only a signal ends, a call, and what may not come back from the kernel each end a
// skeleton, so that none has to know more than what is logged in it.

#include "trace/plan_shape.h"

#include "binary/effects.h"
#include "binary/loops.h"

#include <algorithm>
#include <array>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;

// How often each block is executed for each time the routine is.
// `is_rare`: blocks that branches lead to less often.
std::vector<double> frequencies(const binary::Edges &edges, uint32_t root,
                                const binary::Loops &loops, const binary::Dominators &dominators,
                                const std::vector<bool> &is_rare) {
  constexpr double kRounds = 8, kMax = 1e9, kRare = .25;
  std::vector<double> times(edges.size(), 0);
  std::vector<double> entered(loops.all.size(), 0);
  std::vector<uint32_t> exits(loops.all.size(), 0);
  for (uint32_t from : dominators.order)
    for (uint32_t to : edges[from])
      for (uint32_t l = loops.innermost[from]; l != binary::Loop::kNone && !loops.contains(l, to);
           l = loops.all[l].parent)
        exits[l]++;
  times[root] = 1;
  for (uint32_t at : dominators.order) {
    const uint32_t loop = loops.innermost[at];
    if (loop != binary::Loop::kNone && loops.all[loop].header == at) {
      entered[loop] = std::max(times[at], 1e-6);
      times[at] = std::min(entered[loop] * kRounds, kMax);
    }
    auto weight = [&](uint32_t to) { return is_rare[to] ? kRare : 1; };
    double staying = 0;
    for (uint32_t to : edges[at])
      if (loop == binary::Loop::kNone || loops.contains(loop, to))
        staying += weight(to);
    for (uint32_t to : edges[at]) {
      const bool stays = loop == binary::Loop::kNone || loops.contains(loop, to);
      const bool is_back = dominators.number[to] <= dominators.number[at];
      if (stays && !is_back)
        times[to] += times[at] * weight(to) / staying;
      else if (!stays) {
        // Of all loops that are left, the outermost says how often.
        uint32_t left = loop;
        while (loops.all[left].parent != binary::Loop::kNone &&
               !loops.contains(loops.all[left].parent, to))
          left = loops.all[left].parent;
        times[to] += entered[left] / double(std::max(exits[left], 1u));
      }
    }
  }
  for (double &each : times)
    each = std::max(each, 1e-6);
  return times;
}

class Shaper {
public:
  explicit Shaper(const FlowGraph &graph) : graph_(graph) {}

  PlanShape shape(LoopLogs loops) {
    order_blocks();
    find_starts();
    find_starts_of_loops(loops);
    find_arrivals();
    shape_.counter_of.assign(graph_.blocks.size(), PlanShape::kNoCounter);
    if (loops == LoopLogs::if_needed)
      find_counted();
    return std::move(shape_);
  }

private:
  void order_blocks() {
    edges_.resize(graph_.blocks.size() + 1);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      edges_[b] = graph_.blocks[b].successors;
    const auto root = static_cast<uint32_t>(graph_.blocks.size());
    edges_[root] = graph_.entries;
    const binary::Dominators dominators = binary::dominators(edges_, root);
    loops_ = binary::find_loops(edges_, dominators, root);
    std::vector<bool> calls(edges_.size(), false);
    for (uint32_t b = 0; b < root; b++)
      if (!graph_.blocks[b].is_dispatch())
        for (const Instruction &each : graph_.instructions_of(graph_.blocks[b]))
          calls[b] = calls[b] || each.is_call();
    shape_.times = frequencies(edges_, root, loops_, dominators, calls);
  }

  void find_starts() {
    const size_t count = graph_.blocks.size();
    shape_.is_start.assign(count, false);
    is_target_.assign(count, false);
    for (uint32_t entry : graph_.entries)
      shape_.is_start[entry] = true;
    for (uint32_t b = 0; b < count; b++) {
      const Block &block = graph_.blocks[b];
      if (block.is_dispatch()) {
        for (uint32_t to : block.successors)
          is_target_[to] = true;
        continue;
      }
      if (binary::may_leave(graph_.code, graph_.instructions_of(block).front()))
        shape_.is_start[b] = true;
      const Instruction &last = graph_.last_of(block);
      if (last.is_call() || binary::may_leave(graph_.code, last))
        for (uint32_t to : block.successors)
          shape_.is_start[to] = true;
      if (last.flow == Flow::indirect_jump)
        for (uint32_t to : block.successors)
          if (!graph_.blocks[to].is_dispatch())
            is_target_[to] = true;
    }
  }

  void find_arrivals() {
    const size_t count = graph_.blocks.size();
    bool can_choose = true;
    for (uint32_t b = 0; b < count; b++)
      can_choose &= !(is_target_[b] && shape_.is_start[b]) && !may_leave_by_pointer(b);
    shape_.arrivals.resize(count);
    for (uint32_t b = 0; b < count; b++) {
      if (!is_target_[b])
        continue;
      if (can_choose) {
        shape_.arrivals[b] = static_cast<uint16_t>(shape_.targets.size());
        shape_.targets.push_back(b);
      } else {
        shape_.is_start[b] = true;
      }
    }
  }

  // A loop that nothing ends but a signal would never end in the skeleton.
  void find_starts_of_loops(LoopLogs logs) {
    for (const binary::Loop &loop : loops_.all)
      if (loop.header < graph_.blocks.size() && !graph_.blocks[loop.header].is_dispatch() &&
          (logs == LoopLogs::each_iteration || !can_end(loop)))
        shape_.is_start[loop.header] = true;
  }

  // A jump through a pointer that may lead to one of the labels, or be a tail call: nothing would
  // be logged of where it went.
  bool may_leave_by_pointer(uint32_t b) const {
    const Block &block = graph_.blocks[b];
    return !block.is_dispatch() && !block.successors.empty() &&
           graph_.is_tail_jump(graph_.last_of(block));
  }

  bool can_end(const binary::Loop &loop) const {
    const auto number = static_cast<uint32_t>(&loop - loops_.all.data());
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      if (!loops_.contains(number, b))
        continue;
      const Block &block = graph_.blocks[b];
      for (uint32_t to : block.successors)
        if (!loops_.contains(number, to))
          return true;
      if (block.is_dispatch() || shape_.is_start[b])
        return true;
      if (block.leaves != Block::kStays)
        return true;
      for (const Instruction &each : graph_.instructions_of(block))
        if (each.is_call() || binary::may_leave(graph_.code, each))
          return true;
    }
    return false;
  }

  void find_counted() {
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Block &block = graph_.blocks[b];
      if (block.is_dispatch() || shape_.is_start[b])
        continue;
      const Instruction &last = graph_.last_of(block);
      if (last.flow != Flow::branch ||
          last.target() != graph_.instructions_of(block).front().address ||
          block.leaves != Block::kStays || shape_.arrivals[b])
        continue;
      shape_.counter_of[b] = counter_in(block);
    }
  }

  // A register that counts; PlanShape::kNoCounter: there is none, or an address needs what the loop itself reads.
  uint8_t counter_in(const Block &block) const {
    std::array<int64_t, kGeneralRegisters> steps = {};
    std::array<bool, kGeneralRegisters> is_sum = {};
    is_sum.fill(true);
    std::array<bool, kPlanVariables> is_read = {}; // it follows from what was read in the loop
    auto reads = [&](unsigned reg) {
      if (reg == ASSAY_UOP_IMMEDIATE || reg == ASSAY_REG_ZERO || reg == ASSAY_REG_BIAS)
        return false;
      return reg >= kPlanVariables || is_read[reg];
    };
    for (const bool again : {false, true})
      for (const Instruction &each : graph_.instructions_of(block)) {
        if (each.repeats || each.is_call() || binary::may_leave(graph_.code, each))
          return PlanShape::kNoCounter;
        const auto uops = graph_.code.uops_of(each);
        for (uint32_t u = 0; u < uops.size(); u++) {
          const assay_uop &uop = uops[u];
          const bool any =
              reads(uop.a) || (!binary::has_immediate(uop) && (reads(uop.b) || reads(uop.c)));
          for (const Access &access : graph_.code.accesses_of(each))
            if (any && access.uop == each.uop + u)
              return PlanShape::kNoCounter;
          if (!binary::has_result(uop) || uop.dst >= kPlanVariables)
            continue;
          is_read[uop.dst] = any || binary::reads_memory(uop) || !is_computed(uop);
          if (uop.dst >= kGeneralRegisters || again)
            continue;
          const bool by_constant = binary::has_immediate(uop) && uop.a == uop.dst && uop.width == 8;
          if (by_constant && uop.op == ASSAY_UOP_add)
            steps[uop.dst] += uop.imm;
          else if (by_constant && uop.op == ASSAY_UOP_sub)
            steps[uop.dst] -= uop.imm;
          else
            is_sum[uop.dst] = false;
        }
        if (each.opaque)
          for (unsigned reg = 0; reg < kGeneralRegisters; reg++)
            if (graph_.code.touched_by(each).writes & binary::bit(reg)) {
              is_sum[reg] = false;
              is_read[reg] = true;
            }
      }
    for (uint8_t reg = 0; reg < kGeneralRegisters; reg++)
      if (is_sum[reg] && steps[reg])
        return reg;
    return PlanShape::kNoCounter;
  }

  const FlowGraph &graph_;
  PlanShape shape_;
  std::vector<bool> is_target_; // of indirect jumps
  binary::Edges edges_;         // with one node more, which leads to all entries
  binary::Loops loops_;
};

} // namespace

PlanShape shape_of(const FlowGraph &graph, LoopLogs loops) {
  return Shaper(graph).shape(loops);
}

bool starts_within(const FlowGraph &graph, const Block &block, uint32_t index) {
  if (index == block.first)
    return false;
  const Instruction &before = graph.code.instructions[index - 1];
  return before.is_call() || binary::may_leave(graph.code, before) ||
         binary::may_leave(graph.code, graph.code.instructions[index]);
}

bool is_computed(const assay_uop &uop) {
  return assay_uop_is_value(uop.op) && !assay_uop_is_lane(uop.op) && !assay_uop_reads_modes(uop.op);
}

} // namespace trace
