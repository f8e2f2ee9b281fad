#include "trace/block_log.h"

#include "binary/effects.h"

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::Flow;
using binary::FlowGraph;

using Actions = std::multimap<uint32_t, LogAction>;

// What is logged of a group, in pieces: the values before the same instruction.
void add_group(const Group &group, uint32_t log, uint32_t number, Actions &actions) {
  const auto values = static_cast<uint32_t>(group.values.size());
  for (uint32_t v = 0; v < values;) {
    uint32_t end = v;
    while (end < values && group.values[end].before == group.values[v].before)
      end++;
    actions.emplace(group.values[v].before,
                    LogAction{log, &group, v, end - v, end == values, number});
    v = end;
  }
  if (group.values.empty())
    actions.emplace(group.commit, LogAction{log, &group, 0, 0, true, number});
}

Actions actions_of(ModuleCode &module, const RoutineLog &log, uint32_t block) {
  Actions actions;
  for (uint32_t number = 0; number < kLogs; number++)
    for (const Group &group : log.groups[block][number]) {
      auto &all = number == 0 ? module.groups : module.singles;
      add_group(group, number, static_cast<uint32_t>(all.size()), actions);
      all.push_back(group);
    }
  return actions;
}

std::vector<binary::RegisterSet> logged_later_in(const FlowGraph &graph, const RoutineLog &log,
                                                 uint32_t b, const Actions &actions) {
  const Block &block = graph.blocks[b];
  std::vector<binary::RegisterSet> logged_later(block.count + 2, 0);
  for (const auto &[index, action] : actions)
    for (uint32_t v = action.first_value; v < action.first_value + action.values; v++)
      if (const GroupValue &value = action.group->values[v]; value.access == Access::kNoAddress)
        logged_later[index - block.first] |= binary::register_bit(value.reg);
  if (log.plan)
    for (const PlanStretch &stretch : log.plan->stretches[b])
      for (const PlanPoint &point : stretch.points)
        logged_later[point.before - block.first] |= point.logged_register();
  for (uint32_t i = block.count + 1; i-- > 0;)
    logged_later[i] |= logged_later[i + 1];
  return logged_later;
}

std::vector<std::array<bool, kLogs>> settled_at(const FlowGraph &graph, const RoutineLog &log,
                                                uint32_t b, const Actions &actions, bool carries) {
  const Block &block = graph.blocks[b];
  std::vector<std::array<bool, kLogs>> is_logged(block.count + 1), settles(block.count + 1);
  for (const auto &[index, action] : actions)
    is_logged[index - block.first][action.log] = true;
  if (log.plan)
    for (const PlanStretch &stretch : log.plan->stretches[b])
      for (const PlanPoint &point : stretch.points)
        is_logged[point.before - block.first][0] = true;
  for (uint32_t number = 0; number < kLogs; number++)
    for (uint32_t i = block.count + 1; i-- > 0;) {
      if (ends_at(graph, block, i))
        settles[i][number] = !carries;
      else
        settles[i][number] = leaves(graph, graph.code.instructions[block.first + i]) ||
                             (!is_logged[i + 1][number] && settles[i + 1][number]);
    }
  return settles;
}

} // namespace

BlockLog log_of_block(ModuleCode &module, const FlowGraph &graph, const RoutineLog &log,
                      uint32_t block, bool carries) {
  BlockLog made;
  made.actions = actions_of(module, log, block);
  made.logged_later = logged_later_in(graph, log, block, made.actions);
  made.settles = settled_at(graph, log, block, made.actions, carries);
  return made;
}

bool leaves(const FlowGraph &graph, const binary::Instruction &instruction) {
  const Flow flow = instruction.flow;
  return instruction.is_call() || binary::may_leave(graph.code, instruction) ||
         (flow != Flow::next && flow != Flow::jump && flow != Flow::branch);
}

bool ends_at(const FlowGraph &graph, const Block &block, uint32_t place) {
  return place == block.count ||
         (place + 1 == block.count && graph.last_of(block).flow != Flow::next);
}

} // namespace trace
