// What a plan knows of a routine before it looks at values.
#pragma once

#include "binary/flow_graph.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace trace {

inline constexpr unsigned kGeneralRegisters = 16;
inline constexpr unsigned kPlanVariables =
    ASSAY_REG_TEMPORARIES + ASSAY_UOP_TEMPORARIES; // registers of micro-ops that plans follow

struct PlanShape {
  static constexpr uint8_t kNoCounter = UINT8_MAX;
  // All by block of the graph. Expected executions for each time the routine is executed, more than
  // 0: loops go round eight times, branches go either way.
  std::vector<double> times;
  std::vector<bool> is_start; // a skeleton may begin there
  // Loops of one block that are left where they run on, and in which a register goes up or down by
  // the same in each iteration: that register. If what ends the loop cannot be computed, what the
  // register is behind it says how often it went round.
  std::vector<uint8_t> counter_of;
  std::vector<std::optional<uint16_t>> arrivals; // targets of indirect jumps: their number

  std::vector<uint32_t> targets; // blocks, by that number

  bool is_counted(uint32_t block) const { return counter_of[block] != kNoCounter; }
};

// How loops log.
enum class LoopLogs : uint8_t {
  if_needed,     // what their accesses ask for
  but_no_counts, // the same, but none is counted behind it
  each_iteration // each iteration is a skeleton of its own
};
PlanShape shape_of(const binary::FlowGraph &graph, LoopLogs loops);

// Whether a start stands before an instruction that is not its block's first one.
bool starts_within(const binary::FlowGraph &graph, const binary::Block &block, uint32_t index);

// Whether skeletons can compute what the micro-op does.
bool is_computed(const assay_uop &uop);

} // namespace trace
