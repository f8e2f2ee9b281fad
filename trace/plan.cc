// What accesses and branches ask of a routine's definitions says what is logged (logged_nodes.h);
// the walk over its blocks then keeps the micro-ops that are left, as a skeleton, and says where
// each logged value stands. Registers are the skeleton's variables, so joins need nothing.

#include "trace/plan.h"

#include "binary/effects.h"
#include "trace/definitions.h"
#include "trace/logged_nodes.h"
#include "trace/plan_shape.h"

#include <unordered_map>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;

class Planner {
public:
  Planner(const FlowGraph &graph, const PlanShape &shape, const Definitions &made,
          const LoggedNodes &logged)
      : graph_(graph), shape_(shape), made_(made), logged_(logged) {}

  RoutinePlan plan() {
    number_blocks();
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (!graph_.blocks[b].is_dispatch())
        emit(b);
    plan_.skeleton.address =
        graph_.instructions_of(graph_.blocks[graph_.entries[0]]).front().address;
    plan_.arrivals = shape_.arrivals;
    plan_.begins_with_start = shape_.is_start;
    return std::move(plan_);
  }

private:
  // Each block's first skeleton block; a start within a block begins another one.
  void number_blocks() {
    first_of_.assign(graph_.blocks.size(), 0);
    uint32_t count = 0;
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Block &block = graph_.blocks[b];
      if (block.is_dispatch())
        continue;
      block_of_[graph_.instructions_of(block).front().address] = b;
      first_of_[b] = count;
      count += 1 + shape_.is_counted(b); // before the loop, the loop
      for (uint32_t i = block.first; i < block.first + block.count; i++)
        count += starts_within(graph_, block, i);
    }
    plan_.skeleton.blocks.resize(count);
    plan_.stretches.resize(graph_.blocks.size());
  }

  // The skeleton's block for one of the graph's where control goes on.
  uint32_t go_to(uint32_t block) const {
    return graph_.blocks[block].is_dispatch() || shape_.is_start[block] ? SkeletonBlock::kOut
                                                                        : first_of_[block];
  }
  uint32_t go_to(uint64_t address) const {
    auto found = block_of_.find(address);
    return found == block_of_.end() ? SkeletonBlock::kOut : go_to(found->second);
  }

  void emit(uint32_t b) {
    const Block &block = graph_.blocks[b];
    at_ = first_of_[b];
    stretches_ = &plan_.stretches[b];
    stretches_->emplace_back();
    out().address = graph_.instructions_of(block).front().address;
    if (shape_.is_start[b])
      begin_start(made_.begin[b], block.first);
    else
      for (uint8_t reg = 0; reg < kGeneralRegisters; reg++)
        if (const NodeId node = made_.begin[b][reg]; logged_.needed[node] && logged_.nodes[node])
          log(node, reg, block.first, out().address);
    if (shape_.is_counted(b))
      begin_loop(b);
    for (uint32_t i = block.first; i < block.first + block.count; i++) {
      const Instruction &instruction = graph_.code.instructions[i];
      if (starts_within(graph_, block, i)) {
        out().end = SkeletonBlock::End::stop;
        at_++;
        out().address = instruction.address;
        stretches_->emplace_back();
        begin_start(made_.within.at(i), i);
      }
      if (instruction.repeats && instruction.accesses)
        emit_repeated(instruction, i);
      else
        emit(instruction, i);
    }
    end_block(b);
  }

  SkeletonBlock &out() { return plan_.skeleton.blocks[at_]; }

  void point(PlanPoint point) {
    PlanStretch &stretch = stretches_->back();
    point.offset = stretch.bytes;
    stretch.bytes += point.bytes;
    stretch.points.push_back(point);
  }

  template <class Nodes> void begin_start(const Nodes &nodes, uint32_t index) {
    PlanStart start;
    start.block = at_;
    stretches_->back().start = static_cast<uint32_t>(plan_.starts.size());
    point({index, PlanPoint::Kind::start, 0, 4});
    for (uint8_t reg = 0; reg < kGeneralRegisters; reg++)
      if (const NodeId node = nodes[reg];
          node != kUnknown && logged_.needed[node] && logged_.nodes[node]) {
        start.registers.push_back(reg);
        point({index, PlanPoint::Kind::value, reg, 8});
        plan_.values++;
      }
    plan_.starts.push_back(std::move(start));
  }

  void in(unsigned variable, uint8_t bytes, uint64_t pc) {
    SkeletonStep step;
    step.kind = SkeletonStep::Kind::in;
    step.size = bytes;
    step.pc = pc;
    step.uop.dst = static_cast<uint16_t>(variable);
    out().steps.push_back(step);
  }

  void log(NodeId node, unsigned variable, uint32_t before, uint64_t pc) {
    const Node &of = made_.nodes[node];
    point({before, PlanPoint::Kind::value, of.reg, of.logged_bytes});
    plan_.values++;
    in(variable, of.logged_bytes, pc);
  }

  void begin_loop(uint32_t b) {
    if (logged_.ends_by_count[b])
      in(kLoopEnd, 8, out().address);
    out().end = SkeletonBlock::End::go;
    out().next = {at_ + 1};
    at_++;
    out().address = plan_.skeleton.blocks[at_ - 1].address;
  }

  void emit_access(const Instruction &instruction, const Access &access, const assay_uop &uop,
                   SkeletonStep::Kind kind) {
    SkeletonStep step;
    step.kind = kind;
    step.write = access.write;
    step.size = access.size;
    step.pc = instruction.address;
    step.uop = uop;
    out().steps.push_back(step);
    plan_.accesses++;
  }

  void emit(const Instruction &instruction, uint32_t index) {
    const auto uops = graph_.code.uops_of(instruction);
    for (uint32_t u = 0; u < uops.size(); u++) {
      for (const Access &access : graph_.code.accesses_of(instruction))
        if (access.has_address() && !access.masked && access.size &&
            access.uop == instruction.uop + u)
          emit_access(instruction, access, uops[u], SkeletonStep::Kind::access);
      const NodeId node = made_.result_of[instruction.uop + u];
      if (node == kNoNode || !logged_.needed[node])
        continue;
      if (logged_.nodes[node]) {
        log(node, uops[u].dst, index + 1, instruction.address);
      } else if (!made_.nodes[node].is_given) {
        SkeletonStep step;
        step.pc = instruction.address;
        step.uop = uops[u];
        out().steps.push_back(step);
      }
    }
    if (instruction.opaque)
      for (unsigned reg = 0; reg < kGeneralRegisters; reg++)
        if (graph_.code.touched_by(instruction).writes & binary::bit(reg))
          emit_given(opaque_result(index, reg), reg, index, instruction.address);
  }

  void emit_given(NodeId node, unsigned reg, uint32_t index, uint64_t pc) {
    if (node != kNoNode && logged_.needed[node] && logged_.nodes[node])
      log(node, reg, index + 1, pc);
  }

  // Of an opaque instruction: the node that stands for what it leaves in a register.
  NodeId opaque_result(uint32_t index, unsigned reg) const {
    auto found = made_.opaque.find({index, reg});
    return found == made_.opaque.end() ? kNoNode : found->second;
  }

  void emit_repeated(const Instruction &instruction, uint32_t index) {
    const bool compares = binary::writes_flags(graph_.code.uops_of(instruction));
    for (const Access &access : graph_.code.accesses_of(instruction))
      emit_access(instruction, access, graph_.code.uops[access.uop],
                  compares ? SkeletonStep::Kind::compare : SkeletonStep::Kind::repeat);
    if (compares) {
      point({index + 1, PlanPoint::Kind::value, ASSAY_REG_RCX, 8});
      plan_.values++;
    }
    const auto &made = made_.repeated.at(index);
    for (unsigned reg = 0; reg < kGeneralRegisters; reg++)
      emit_given(made[reg], reg, index, instruction.address);
  }

  void end_block(uint32_t b) {
    const Block &block = graph_.blocks[b];
    const Instruction &last = graph_.last_of(block);
    SkeletonBlock &to = out();
    using End = SkeletonBlock::End;
    auto go = [&](uint32_t next) {
      to.end = next == SkeletonBlock::kOut ? End::stop : End::go;
      if (to.end == End::go)
        to.next = {next};
    };
    if (last.is_call() || binary::may_leave(graph_.code, last) || last.flow == Flow::ret ||
        last.flow == Flow::stop) {
      to.end = End::stop;
    } else if (last.flow == Flow::next) {
      go(go_to(last.end()));
    } else if (last.flow == Flow::jump) {
      go(go_to(last.target()));
    } else if (last.flow == Flow::indirect_jump) {
      to.end = End::stop;
      if (!shape_.targets.empty() && !block.successors.empty()) {
        to.end = End::choose;
        for (uint32_t target : shape_.targets)
          to.next.push_back(go_to(target));
      }
    } else {
      branch(b, last);
    }
  }

  void branch(uint32_t b, const Instruction &last) {
    SkeletonBlock &to = out();
    using End = SkeletonBlock::End;
    uint32_t taken = go_to(last.target());
    const uint32_t runs_on = go_to(last.end());
    if (shape_.is_counted(b))
      taken = at_; // not to where the loop is entered
    const size_t use = made_.branch_use.at(b);
    to.next = {taken, runs_on};
    if (taken == runs_on) {
      to.end = taken == SkeletonBlock::kOut ? End::stop : End::go;
      if (to.end == End::stop)
        to.next.clear();
      else
        to.next.pop_back();
      return;
    }
    const uint32_t index = graph_.blocks[b].first + graph_.blocks[b].count;
    if (!logged_.branches[use]) {
      to.end = End::branch;
      for (const assay_uop &uop : graph_.code.uops_of(last))
        if (uop.op == ASSAY_UOP_branch)
          to.condition = uop.b;
    } else if (logged_.ends_by_count[b]) {
      to.end = End::count;
      to.condition = shape_.counter_of[b];
      point({index, PlanPoint::Kind::behind, shape_.counter_of[b], 8});
      plan_.values++;
    } else {
      to.end = End::logged;
      point({index - 1, PlanPoint::Kind::branch, 0, 1});
      plan_.branches++;
    }
  }

  const FlowGraph &graph_;
  const PlanShape &shape_;
  const Definitions &made_;
  const LoggedNodes &logged_;
  RoutinePlan plan_;
  std::unordered_map<uint64_t, uint32_t> block_of_; // by address
  std::vector<uint32_t> first_of_;                  // by block: its first one in the skeleton
  uint32_t at_ = 0;                                 // of the skeleton's blocks
  std::vector<PlanStretch> *stretches_ = nullptr;
};

std::optional<RoutinePlan> plan_with(const FlowGraph &graph, LoopLogs loops) {
  const PlanShape shape = shape_of(graph, loops);
  const Definitions made = define(graph, shape);
  if (!made.is_complete)
    return std::nullopt;
  const auto logged = choose_logged(graph, shape, made);
  if (!logged)
    return std::nullopt;
  return Planner(graph, shape, made, *logged).plan();
}

} // namespace

std::optional<RoutinePlan> plan_routine(const FlowGraph &graph, bool each_iteration) {
  if (graph.blocks.empty() || graph.blocks.size() > UINT16_MAX ||
      graph.blocks.size() * kGeneralRegisters > kMaxNodes)
    return std::nullopt;
  if (each_iteration)
    return plan_with(graph, LoopLogs::each_iteration);
  if (auto plan = plan_with(graph, LoopLogs::if_needed))
    return plan;
  return plan_with(graph, LoopLogs::but_no_counts);
}

} // namespace trace
