// What one block of a routine logs, in the order of its instructions.
//
// Places in a block are counted from its first instruction, 0; the last one is behind its last
// instruction.
#pragma once

#include "binary/flow_graph.h"
#include "trace/log_snippets.h"
#include "trace/module_code.h"
#include "trace/routine_log.h"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace trace {

struct BlockLog {
  // Of groups, by the number of the instruction before which they stand.
  std::multimap<uint32_t, LogAction> actions;
  // By place: registers that are logged there or later. What is logged of one that the program has
  // no more use for must still be in it.
  std::vector<binary::RegisterSet> logged_later;
  // By place and log: what is complete there is followed by nothing more before the position must go on.
  std::vector<std::array<bool, kLogs>> settles;
};

// Adds the block's groups to the module's; refers to those of the routine's log, which must outlive the answer.
// `carries`: the position need not go on where the block ends.
BlockLog log_of_block(ModuleCode &module, const binary::FlowGraph &graph, const RoutineLog &log,
                      uint32_t block, bool carries);

// Whether other code may be executed before what follows the instruction.
bool leaves(const binary::FlowGraph &graph, const binary::Instruction &instruction);
// Whether control goes on from that place: before a jump, or behind the last instruction.
bool ends_at(const binary::FlowGraph &graph, const binary::Block &block, uint32_t place);

} // namespace trace
