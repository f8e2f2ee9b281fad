// Which values and branches a routine logs, so that all of its accesses follow: the cheapest set of
// definitions by how often each is expected to be executed, found as a minimum cut between what
// cannot be computed (what memory, callers and callees give) and what addresses and branches ask.
#pragma once

#include "binary/flow_graph.h"
#include "trace/skeleton.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace trace {

// Something that is logged at one place.
struct PlanPoint {
  enum class Kind : uint8_t {
    start,  // the number of a start, 4 bytes
    value,  // the low `bytes` of general register `reg`
    branch, // whether the branch that follows is taken, 1 byte
    behind, // like value, but where the loop of one block is left
  };
  uint32_t before = 0; // instruction of the graph's code, or behind the block's last one
  Kind kind = Kind::value;
  uint8_t reg = 0;
  uint8_t bytes = 0;
  uint32_t offset = 0; // in the stretch

  // The register whose contents are logged; none of a start and of a branch.
  binary::RegisterSet logged_register() const {
    return kind == Kind::value || kind == Kind::behind ? binary::register_bit(reg) : 0;
  }
};

// What is logged together, one behind the other in the stream.
struct PlanStretch {
  std::vector<PlanPoint>
      points; // in the order of execution. A start's number has the lowest offset, but is written last: it says that the others are there
  uint32_t bytes = 0;
  std::optional<uint32_t> start; // of RoutinePlan::starts
};

// Where a skeleton may begin.
struct PlanStart {
  uint32_t block = 0;             // of the skeleton
  std::vector<uint8_t> registers; // that are logged there, 8 bytes each
};

struct RoutinePlan {
  Skeleton skeleton;
  std::vector<PlanStart> starts;
  std::vector<std::vector<PlanStretch>> stretches; // by block of the graph
  // By block of the graph: what is logged when an indirect jump comes there, 2 bytes.
  std::vector<std::optional<uint16_t>> arrivals;
  std::vector<bool> begins_with_start; // by block of the graph
  uint32_t accesses = 0, values = 0, branches = 0;
};

// `each_iteration`: MoveSettings. Nullopt where something that an address needs is in no general
// register behind the instruction that makes it.
std::optional<RoutinePlan> plan_routine(const binary::FlowGraph &graph, bool each_iteration);

} // namespace trace
