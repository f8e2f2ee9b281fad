// Which definitions and branches are logged, so that all accesses follow; of plan.cc alone.
#pragma once

#include "trace/definitions.h"

#include <optional>
#include <vector>

namespace trace {

struct LoggedNodes {
  std::vector<bool> nodes;         // by node: it is logged
  std::vector<bool> needed;        // by node: it is logged, or computed
  std::vector<bool> branches;      // by use: it is a branch, and logged
  std::vector<bool> ends_by_count; // by block: a loop whose counter is logged behind it
};

// Nullopt if something that an address needs cannot be logged.
std::optional<LoggedNodes> choose_logged(const binary::FlowGraph &graph, const PlanShape &shape,
                                         const Definitions &definitions);

} // namespace trace
