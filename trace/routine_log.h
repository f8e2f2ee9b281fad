// What the moved code of a routine logs, block by block.
#pragma once

#include "binary/flow_graph.h"
#include "trace/groups.h"
#include "trace/module_code.h"
#include "trace/plan.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace trace {

struct RoutineLog {
  std::optional<RoutinePlan> plan; // of the whole routine; then there are no groups of log 0
  uint32_t first_start = 0;        // number of the plan's first start among the module's groups
  std::vector<std::array<std::vector<Group>, kLogs>> groups; // by block
  std::vector<bool> checked;                                 // by block: it begins with a check
  std::vector<bool> only_behind; // by block: a loop by itself that logs nothing until it is left

  bool logs(uint32_t block) const;
  // Those whose contents are logged in the block.
  binary::RegisterSet registers_in(uint32_t block) const;
};

// Adds the starts and the skeleton of the plan to the module, and what is logged to the function's counts.
RoutineLog log_of_routine(ModuleCode &module, const binary::FlowGraph &graph,
                          MovedFunction &function);

} // namespace trace
