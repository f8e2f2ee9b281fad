// How the position in the buffer of groups goes from block to block of a routine: which register
// holds it where a block begins, and how many bytes have been logged behind it by then.
#pragma once

#include "binary/liveness.h"
#include "trace/block_order.h"
#include "trace/log_snippets.h"
#include "trace/module_code.h"
#include "trace/position_registers.h"
#include "trace/routine_log.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace trace {

class PositionFlow {
public:
  // All must outlive it.
  PositionFlow(const ModuleCode &module, const binary::FlowGraph &graph, const BlockOrder &order,
               const binary::Liveness &liveness, const RoutineLog &log);

  // Where a block begins: the register that holds the position, if not memory alone does, and the
  // bytes that it has yet to go on by.
  std::optional<Gpr> holder_at(uint32_t block) const { return holder_at_[block]; }
  const LogSnippets::Pending &pending_at(uint32_t block) const { return pending_at_[block]; }
  // Where the routine's indirect jumps arrive.
  std::optional<Gpr> dispatch_holder() const { return dispatch_holder_; }
  // Whether the jump arrives at blocks of this routine, all of which log where.
  bool is_dispatched(const binary::Instruction &jump) const;
  // Whether control comes there by jumps of the routine alone, which leave the position where it is
  // expected.
  bool is_entered_by_edges(uint32_t block) const;
  // Whether the position need not go on where the block ends: what follows logs on from there, or
  // does so alone, or is branched to.
  bool carries_on(uint32_t block) const;

  // Where a block ends: blocks that only this one leads to begin with what is pending.
  void pass_pending(uint32_t block, const LogSnippets::Pending &pending);
  // Before its last instruction: what holds the position there goes on to hold it in those blocks.
  void pass_holder(uint32_t block, Gpr holder);

private:
  void choose_holders();
  void choose_dispatch_holder(const std::vector<binary::RegisterSet> &logged);
  HolderWish wish_of(uint32_t block) const;
  bool is_followed_alone(uint32_t block, uint32_t next) const;

  const ModuleCode &module_;
  const binary::FlowGraph &graph_;
  const BlockOrder &order_;
  const binary::Liveness &liveness_;
  const RoutineLog &log_;
  std::vector<std::optional<Gpr>> holder_at_;    // by block
  std::vector<LogSnippets::Pending> pending_at_; // by block
  std::optional<Gpr> dispatch_holder_;
};

} // namespace trace
