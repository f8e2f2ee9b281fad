// Where ways join, each block says in which register it wants the position, and those that lead to
// it copy it (decision 040); what may be wanted is chosen by position_registers.cc. A block that
// only one other leads to begins with whatever that one ends with.

#include "trace/position_flow.h"

#include "binary/effects.h"
#include "trace/block_log.h"

#include <algorithm>
#include <bit>

namespace trace {

using binary::Block;
using binary::Flow;
using binary::Instruction;
using binary::RegisterSet;

PositionFlow::PositionFlow(const ModuleCode &module, const binary::FlowGraph &graph,
                           const BlockOrder &order, const binary::Liveness &liveness,
                           const RoutineLog &log)
    : module_(module), graph_(graph), order_(order), liveness_(liveness), log_(log),
      holder_at_(graph.blocks.size()), pending_at_(graph.blocks.size()) {
  if (module_.log & ASSAY_LOG_groups)
    choose_holders();
}

void PositionFlow::choose_holders() {
  std::vector<RegisterSet> logged(graph_.blocks.size(), 0);
  for (uint32_t b : order_.blocks())
    logged[b] = log_.registers_in(b);
  const auto registers = position_registers(graph_, liveness_, order_.blocks(), logged);
  choose_dispatch_holder(logged);
  std::vector<HolderWish> wanted(graph_.blocks.size(), HolderWish::none);
  for (uint32_t b : order_.blocks()) {
    if (!is_entered_by_edges(b))
      continue;
    holder_at_[b] = registers[b];
    wanted[b] = wish_of(b);
  }
  add_registers_at_entries(graph_, liveness_, logged, wanted, dispatch_holder_, holder_at_);
}

HolderWish PositionFlow::wish_of(uint32_t block) const {
  const binary::NodeList &from = graph_.blocks[block].predecessors;
  if (from.size() == 1 && !graph_.blocks[from.front()].is_dispatch() &&
      is_followed_alone(from.front(), block)) // begins with what holds it there
    return HolderWish::none;
  if (log_.logs(block))
    return HolderWish::for_what_it_logs;
  const bool leads_to_logs = std::ranges::any_of(graph_.blocks[block].successors,
                                                 [&](uint32_t to) { return log_.logs(to); });
  return leads_to_logs ? HolderWish::to_pass_on : HolderWish::none;
}

// A register that holds nothing wherever the routine's indirect jumps arrive, and which none of them reads.
void PositionFlow::choose_dispatch_holder(const std::vector<RegisterSet> &logged) {
  if (!log_.plan)
    return;
  RegisterSet busy = kFrameRegisters;
  bool any = false;
  for (uint32_t b : order_.blocks()) {
    if (log_.plan->arrivals[b]) {
      any = true;
      busy = static_cast<RegisterSet>(busy | liveness_.at(b) | logged[b]);
    }
    if (const Instruction &last = graph_.last_of(graph_.blocks[b]);
        last.flow == Flow::indirect_jump)
      busy = static_cast<RegisterSet>(busy | binary::effects_of(graph_.code, last).reads);
  }
  if (const auto free = static_cast<RegisterSet>(~busy); any && free)
    dispatch_holder_ = static_cast<Gpr>(std::countr_zero(free));
}

bool PositionFlow::is_dispatched(const Instruction &jump) const {
  return jump.flow == Flow::indirect_jump && dispatch_holder_ && !graph_.is_tail_jump(jump);
}

bool PositionFlow::is_entered_by_edges(uint32_t block) const {
  if (std::find(graph_.entries.begin(), graph_.entries.end(), block) != graph_.entries.end())
    return false;
  if (log_.plan && log_.plan->begins_with_start[block])
    return false;
  if (!log_.groups[block][0].empty() && log_.groups[block][0].front().loop)
    return false;
  const bool has_arrival = log_.plan && log_.plan->arrivals[block];
  for (uint32_t from : graph_.blocks[block].predecessors) {
    if (graph_.blocks[from].is_dispatch()) {
      if (!has_arrival)
        return false;
      continue;
    }
    const Instruction &last = graph_.last_of(graph_.blocks[from]);
    if (last.is_call() || (last.flow == Flow::indirect_jump && !has_arrival))
      return false;
  }
  return true;
}

bool PositionFlow::carries_on(uint32_t b) const {
  const Block &block = graph_.blocks[b];
  const Instruction &last = graph_.last_of(block);
  if (leaves(graph_, last) || block.leaves != Block::kStays || block.runs_on != Block::kStays ||
      log_.only_behind[b])
    return false;
  bool any = false;
  for (uint32_t next : block.successors) {
    if (is_followed_alone(b, next))
      any |= !log_.checked[next] && log_.logs(next);
    else if (last.flow != Flow::branch || graph_.blocks[next].is_dispatch() ||
             order_.address_of(next) != last.target() || !order_.is_later(next, b))
      return false;
  }
  return any;
}

void PositionFlow::pass_pending(uint32_t block, const LogSnippets::Pending &pending) {
  for (uint32_t next : graph_.blocks[block].successors)
    if (is_followed_alone(block, next))
      pending_at_[next] = pending;
}

void PositionFlow::pass_holder(uint32_t b, Gpr holder) {
  const Block &block = graph_.blocks[b];
  const RegisterSet bit = binary::register_bit(holder);
  if (binary::effects_of(graph_.code, graph_.last_of(block)).writes & bit)
    return;
  for (uint32_t next : block.successors)
    if (!holder_at_[next] && is_followed_alone(b, next) && !(log_.registers_in(next) & bit))
      holder_at_[next] = holder;
}

// Whether the block `next` is moved later, and only `block` leads to it.
bool PositionFlow::is_followed_alone(uint32_t block, uint32_t next) const {
  return !graph_.blocks[next].is_dispatch() && graph_.blocks[next].predecessors.size() == 1 &&
         order_.is_later(next, block) && is_entered_by_edges(next) &&
         !(log_.plan && log_.plan->arrivals[next]);
}

} // namespace trace
