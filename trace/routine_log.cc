#include "trace/routine_log.h"

#include "trace/check_places.h"

#include <algorithm>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::FlowGraph;

void take_plan(ModuleCode &module, RoutineLog &log, MovedFunction &function) {
  function.logged = log.plan->accesses;
  function.values = log.plan->values;
  function.branches = log.plan->branches;
  log.first_start = static_cast<uint32_t>(module.groups.size());
  const auto skeleton = static_cast<uint32_t>(module.skeletons.size());
  for (const PlanStart &start : log.plan->starts) {
    Group &group = module.groups.emplace_back();
    group.start = {skeleton, start.block};
    for (uint8_t reg : start.registers)
      group.values.push_back({0, reg, Access::kNoAddress});
  }
  module.skeletons.push_back(std::move(log.plan->skeleton));
}

// Of a block that is a loop by itself one for all of its iterations, where that is wanted and can be.
std::vector<Group> shared_groups(const ModuleCode &module, const FlowGraph &graph,
                                 const Block &block) {
  std::vector<Group> groups;
  if (!module.settings.each_iteration)
    if (auto loop = loop_group_of(graph, block))
      groups.push_back(std::move(*loop));
  return groups.empty() ? groups_of(graph, block) : groups;
}

// Of the plan, what the block logs at most.
uint32_t planned_bytes(const RoutinePlan &plan, uint32_t block) {
  uint32_t bytes = plan.arrivals[block] ? 2 : 0;
  for (const PlanStretch &stretch : plan.stretches[block])
    bytes += stretch.bytes;
  return bytes;
}

bool logs_behind(const ModuleCode &module, const RoutineLog &log, uint32_t block) {
  if (module.log != ASSAY_LOG_groups)
    return false;
  if (log.plan) {
    const auto &points = log.plan->stretches[block].front().points;
    return points.size() == 1 && points.front().kind == PlanPoint::Kind::behind;
  }
  const std::vector<Group> &groups = log.groups[block][0];
  return groups.size() == 1 && groups.front().loop.has_value();
}

} // namespace

RoutineLog log_of_routine(ModuleCode &module, const FlowGraph &graph, MovedFunction &function) {
  const size_t blocks = graph.blocks.size();
  RoutineLog log;
  log.groups.resize(blocks);
  if (module.settings.plans && module.log & ASSAY_LOG_groups)
    log.plan = plan_routine(graph, module.settings.each_iteration);
  if (log.plan)
    take_plan(module, log, function);
  LoggedBlocks logged = {std::vector<uint32_t>(blocks, 0), std::vector<bool>(blocks, false)};
  for (uint32_t b = 0; b < blocks; b++) {
    const Block &block = graph.blocks[b];
    if (block.is_dispatch())
      continue;
    for (const binary::Instruction &each : graph.instructions_of(block))
      function.accesses += each.accesses;
    logged.bytes[b] = log.plan ? planned_bytes(*log.plan, b) : 0;
    for (uint32_t number : module.logs()) {
      if (number == 0 && log.plan)
        continue;
      std::vector<Group> made =
          number == 1 ? single_accesses(graph, block) : shared_groups(module, graph, block);
      uint32_t bytes = 0;
      for (const Group &group : made) {
        bytes += group.bytes();
        if (number == 0) {
          function.logged += static_cast<uint32_t>(group.accesses.size());
          function.values += static_cast<uint32_t>(group.values.size());
        }
      }
      logged.bytes[b] = std::max(logged.bytes[b], bytes);
      log.groups[b][number] = std::move(made);
    }
    logged.only_behind[b] = logs_behind(module, log, b);
  }
  log.checked = module.log == ASSAY_LOG_nothing ? std::vector<bool>(blocks, false)
                                                : check_places(graph, logged);
  log.only_behind = std::move(logged.only_behind);
  return log;
}

bool RoutineLog::logs(uint32_t block) const {
  if (plan)
    for (const PlanStretch &stretch : plan->stretches[block])
      if (stretch.bytes)
        return true;
  return std::ranges::any_of(groups[block], [](const auto &each) { return !each.empty(); });
}

binary::RegisterSet RoutineLog::registers_in(uint32_t block) const {
  binary::RegisterSet registers = 0;
  if (plan)
    for (const PlanStretch &stretch : plan->stretches[block])
      for (const PlanPoint &point : stretch.points)
        registers |= point.logged_register();
  for (const std::vector<Group> &each : groups[block])
    for (const Group &group : each)
      for (const GroupValue &value : group.values)
        if (value.access == Access::kNoAddress)
          registers |= binary::register_bit(value.reg);
  return registers;
}

} // namespace trace
